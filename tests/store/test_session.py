"""Transactions: what is put is read back, versions are guarded, nothing half-done stays."""

import pytest
from sqlalchemy import text

from app.core.manifests import Manifest
from app.errors import AlreadyExists, Conflict, Invalid, InvariantBroken, NotFound
from app.store import changes
from app.store.kinds import KINDS
from app.store.session import Database
from app.store.tracking import Stored, StoredWorkload, Tracking
from tests.store.objects import (
    ADMIN,
    cluster_queue,
    manifest,
    uid,
    with_spec,
    with_status,
    workload,
)

RICH_METADATA = {
    "labels": {"a": "b"},
    "annotations": {"note": "ünïcode \\ \" '"},
    "finalizers": ["kueue.x-k8s.io/resource-in-use"],
    "ownerReferences": [{"kind": "Job", "uid": uid(99), "controller": True}],
    "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:cohortName": {}}}}],
    "deletionTimestamp": "2026-01-02T03:05:00Z",
    "deletionGracePeriodSeconds": 0,
}


async def _store(database: Database, *objects: Manifest) -> tuple[Manifest, ...]:
    async with database.write(ADMIN) as tx:
        for item in objects:
            tx.put(item)
    return tx.written


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_comes_back_as_it_was_put(database: Database, kind: str) -> None:
    namespace = "team-a" if kind in ("Workload", "LocalQueue") else None
    body = (
        {"value": 7, "description": "seven"}
        if KINDS[kind].flat
        else {"spec": {"x": [1, 2.5, None, True, {"deep": {}}]}, "status": {}}
    )
    original = manifest(kind, "a", 1, namespace=namespace, **body)
    original["metadata"] |= RICH_METADATA
    (written,) = await _store(database, original)
    version = written["metadata"]["resourceVersion"]
    assert written == {**original, "metadata": {**original["metadata"], "resourceVersion": version}}
    async with database.read() as tx:
        assert await tx.get(kind, namespace, "a") == written
        assert await tx.list(kind) == [written]
        assert await tx.list(kind, namespace) == [written]
        assert await tx.list(kind, "elsewhere") == []
        assert await tx.get(kind, namespace, "b") is None
        assert await changes.head(tx) == int(version)


async def test_lists_are_ordered_bytewise_and_paged(database: Database) -> None:
    names = ["B", "a", "a-b", "a.b", "ab", "é", *(f"n{i:04d}" for i in range(1200))]
    await _store(database, *(workload(name, i) for i, name in enumerate(names)))
    async with database.read() as tx:
        found = [item["metadata"]["name"] for item in await tx.list("Workload")]
        sizes = [len(page) async for page in tx.pages("Workload")]
    assert found == sorted(names, key=str.encode)
    assert sizes == [500, 500, 206]


async def test_a_change_moves_version_and_feed(database: Database) -> None:
    (first,) = await _store(database, cluster_queue("q", 1))
    async with database.write(ADMIN) as tx:
        held = await tx.get("ClusterQueue", None, "q", lock=True)
        assert held == first
        tx.put(with_spec(first, quota=20))
    (second,) = tx.written
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    async with database.read() as read:
        feed = await changes.since(read, 0 + 1)
    assert [(change.type, change.object) for change in feed] == [
        ("ADDED", first),
        ("MODIFIED", second),
    ]
    assert tx.changes == tuple(feed[1:])


async def test_an_equal_object_is_not_written(database: Database) -> None:
    (first,) = await _store(database, cluster_queue("q", 1))
    assert await _store(database, {**first}) == (first,)
    async with database.read() as tx:
        assert await changes.head(tx) == int(first["metadata"]["resourceVersion"])


async def test_a_stale_version_conflicts(database: Database) -> None:
    (first,) = await _store(database, cluster_queue("q", 1))
    await _store(database, with_spec(first, quota=20))
    with pytest.raises(Conflict, match=r'clusterqueues\.kueue.* "q": the object has been modified'):
        await _store(database, with_spec(first, quota=30))
    with pytest.raises(NotFound, match=r'clusterqueues\.kueue.* "r" not found'):
        await _store(
            database, {**first, "metadata": {**first["metadata"], "uid": uid(2), "name": "r"}}
        )


async def test_a_name_is_taken_once_per_namespace(database: Database) -> None:
    await _store(database, workload("w", 1), workload("w", 2, namespace="team-b"))
    with pytest.raises(AlreadyExists, match='"team-a/w" already exists'):
        await _store(database, workload("w", 3))
    await _store(database, cluster_queue("q", 4))
    with pytest.raises(AlreadyExists, match='"q" already exists'):
        await _store(database, cluster_queue("q", 5))


async def test_a_job_has_one_live_workload(database: Database) -> None:
    job = {"uid": uid(50), "kind": "Job", "name": "j"}
    async with database.write(ADMIN) as tx:
        tx.put(workload("w1", 1), Tracking(job=job, state="finished"))
        tx.put(workload("w2", 2), Tracking(job=job))
    with pytest.raises(AlreadyExists, match="already has a live workload"):
        async with database.write(ADMIN) as tx:
            tx.put(workload("w3", 3), Tracking(job=job))


async def test_removal(database: Database) -> None:
    (first,) = await _store(database, workload("w", 1))
    async with database.write(ADMIN) as tx:
        tx.remove("Workload", "team-a", "w")
    (last,) = tx.written
    assert last["metadata"]["uid"] == first["metadata"]["uid"]
    assert [change.type for change in tx.changes] == ["DELETED"]
    assert int(last["metadata"]["resourceVersion"]) == tx.changes[0].number
    async with database.read() as read:
        assert await read.get("Workload", "team-a", "w") is None
    with pytest.raises(NotFound, match='"w" not found'):
        async with database.write(ADMIN) as tx:
            tx.remove("Workload", "team-a", "w")


async def test_a_name_can_pass_to_a_new_object_in_one_transaction(database: Database) -> None:
    await _store(database, cluster_queue("q", 1))
    async with database.write(ADMIN) as tx:
        tx.remove("ClusterQueue", None, "q")
        tx.put(cluster_queue("q", 2))
    assert [(change.type, change.uid) for change in tx.changes] == [
        ("DELETED", uid(1)),
        ("ADDED", uid(2)),
    ]
    async with database.read() as read:
        found = await read.get("ClusterQueue", None, "q")
    assert found == tx.written[1]


async def test_a_new_object_can_be_withdrawn(database: Database) -> None:
    async with database.write(ADMIN) as tx:
        tx.put(cluster_queue("q", 1))
        tx.remove("ClusterQueue", None, "q")
    assert tx.written == ()
    async with database.read() as read:
        assert await read.list("ClusterQueue") == []


async def test_tracking_changes_alone_move_no_version(database: Database) -> None:
    (first,) = await _store(database, workload("w", 1))
    tracking = Tracking(
        state="inactive", attempt=2, job={"uid": uid(9)}, template={"parallelism": 3}
    )
    async with database.write(ADMIN) as tx:
        tx.put(first, tracking)
    assert tx.changes == ()
    async with database.write(ADMIN) as tx:
        assert await tx.get_stored("Workload", "team-a", "w") == StoredWorkload(first, tracking)
        tx.put(with_status(first, conditions=[]))
    assert tx.stored == (StoredWorkload(tx.written[0], tracking),)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Tracking(attempt=2), Tracking(attempt=1)),
        (Tracking(epoch=2), Tracking(epoch=1)),
        (Tracking(decided_version=2), Tracking(decided_version=1)),
        (Tracking(state="finished"), Tracking(state="pending")),
        (Tracking(state="gone"), Tracking(state="finished")),
    ],
    ids=["attempt", "epoch", "decision", "finished", "gone"],
)
async def test_tracking_never_goes_back(
    database: Database, before: Tracking, after: Tracking
) -> None:
    async with database.write(ADMIN) as tx:
        tx.put(workload("w", 1), before)
    with pytest.raises(InvariantBroken, match="would go back"):
        async with database.write(ADMIN) as again:
            again.put(tx.written[0], after)


async def test_an_error_in_the_block_leaves_nothing(database: Database) -> None:
    async def fail_late() -> None:
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue("q", 1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_late()
    with pytest.raises(AlreadyExists):
        await _store(database, cluster_queue("q", 2), cluster_queue("q", 3))
    async with database.read() as read:
        assert await read.list("ClusterQueue") == []
        assert await changes.head(read) == 1


async def test_a_dry_run_checks_and_stores_nothing(database: Database) -> None:
    (first,) = await _store(database, cluster_queue("q", 1))
    async with database.write(ADMIN, dry_run=True) as tx:
        tx.put(with_spec(first, quota=99))
        tx.put(workload("w", 2))
        tx.bump_roots(["q"])
    assert [item["metadata"].get("resourceVersion") for item in tx.written] == [
        first["metadata"]["resourceVersion"],
        None,
    ]
    with pytest.raises(AlreadyExists):
        async with database.write(ADMIN, dry_run=True) as tx:
            tx.put(cluster_queue("q", 3))
    async with database.read() as read:
        assert await read.list("ClusterQueue") == [first]
        assert await read.list("Workload") == []
        assert await changes.head(read) == int(first["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    "value", ["nul \x00", "\ud800", 2**70], ids=["nul", "surrogate", "huge integer"]
)
async def test_what_json_in_postgres_cannot_hold_is_invalid(
    database: Database, value: object
) -> None:
    with pytest.raises(Invalid, match="stored"):
        await _store(database, manifest("ClusterQueue", "q", 1, spec={"x": value}))


async def test_a_read_sees_one_moment(database: Database) -> None:
    async with database.read() as read:
        before = await changes.head(read)
        await _store(database, cluster_queue("q", 1))
        assert await read.list("ClusterQueue") == []
        assert await changes.head(read) == before


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(Exception, match="read-only"):
        async with database.read() as read:
            await read.rows(text("delete from meta"))


def test_stored_versions_are_numbers() -> None:
    assert Stored({"metadata": {"resourceVersion": "12"}}).version == 12

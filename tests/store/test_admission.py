"""The guarded commit: what moved loses, quota is never exceeded, ledger and conclusions agree with the rows."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from app.core.manifests import Manifest
from app.errors import InvariantBroken, LeaseLost
from app.store import audit, changes, decisions, lease, ledger, workloads
from app.store.admission import Cycle, CycleWrite, Outcome, commit_cycle
from app.store.decisions import Conclusion
from app.store.lease import Lease
from app.store.ledger import Charge
from app.store.session import Database
from app.store.tracking import StoredWorkload, Tracking
from tests.store.objects import ADMIN, ENGINE, cluster_queue, uid, with_spec, with_status, workload

LEADER_TTL_S = 60


@pytest.fixture
async def leading(database: Database) -> Lease:
    taken = await lease.take(database, "leader", ttl_s=LEADER_TTL_S)
    assert taken is not None
    return taken


@pytest.fixture
async def queue(database: Database) -> Manifest:
    """A queue in the tree "org", and one in a tree of its own."""
    async with database.write(ADMIN) as tx:
        tx.put(cluster_queue("q", 100, cohort="org"))
        tx.put(cluster_queue("apart", 101))
    return tx.written[0]


async def _workloads(database: Database, count: int, *, first: int = 0) -> list[Manifest]:
    async with database.write(ADMIN) as tx:
        for number in range(first, first + count):
            tx.put(workload(f"w{number}", number))
    return list(tx.written)


async def _head(database: Database) -> int:
    async with database.read() as tx:
        return await changes.head(tx)


async def _by_uid(database: Database, *numbers: int) -> Sequence[StoredWorkload]:
    async with database.read() as tx:
        return await workloads.by_uids(tx, [uid(number) for number in numbers])


def admit(
    of: Manifest, leading: Lease, *, queue: str = "q", root: str = "org", **more: Any
) -> CycleWrite:
    concluded = Conclusion(
        workload_uid=of["metadata"]["uid"],
        attempt=1,
        cluster_queue=queue,
        outcome="admitted",
        reason="QuotaReserved",
        message="fits",
        facts={"flavor": "default"},
    )
    return CycleWrite(
        manifest=with_status(of, admission={"clusterQueue": queue}),
        expects="pending",
        track=lambda tracking: tracking.decided("admitted", epoch=leading.epoch),
        roots=(root,),
        charges=(
            Charge(
                cluster_queue=queue, flavor="default", resource="cpu", amount=3000, borrowed=1000
            ),
            Charge(cluster_queue=queue, flavor="default", resource="memory", amount=2**33),
        ),
        conclusion=concluded,
        **more,
    )


def evict(of: Manifest, leading: Lease, **more: Any) -> CycleWrite:
    return CycleWrite(
        manifest=with_status(of, conditions=[{"type": "Evicted", "status": "True"}]),
        expects="admitted",
        track=lambda tracking: tracking.decided("evicting", epoch=leading.epoch),
        roots=("org",),
        **more,
    )


async def _admitted(database: Database, leading: Lease, *objects: Manifest) -> Outcome:
    cycle = Cycle(writes=[admit(of, leading) for of in objects], seen=await _head(database))
    outcome = await commit_cycle(database, leading, cycle)
    assert outcome.refused == frozenset()
    return outcome


async def test_a_cycle_is_committed_whole(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    first, second = await _workloads(database, 2)
    outcome = await _admitted(database, leading, first, second)
    assert [change.uid for change in outcome.changes] == [uid(0), uid(1)]
    assert outcome.roots == {"org": outcome.changes[-1].number}
    found, _ = await _by_uid(database, 0, 1)
    assert found == outcome.stored[0]
    assert found.tracking == Tracking(state="admitted", attempt=1, epoch=1, decided_version=1)
    async with database.read() as tx:
        spans = await ledger.spans(tx, workload_uid=uid(0))
        past = await decisions.history(tx, uid(0))
        entries = await audit.entries(tx, kind="Workload", name="w0")
        column = await tx.rows(text("select cluster_queue from workloads order by uid"))
    assert [(span.charge.resource, span.charge.amount, span.charge.borrowed) for span in spans] == [
        ("cpu", 3000, 1000),
        ("memory", 2**33, 0),
    ]
    assert {(span.attempt, span.ended_at) for span in spans} == {(1, None)}
    assert [(one.conclusion.outcome, one.conclusion.facts) for one in past] == [
        ("admitted", {"flavor": "default"})
    ]
    assert [(entry.verb, entry.actor.name) for entry in entries] == [
        ("admit", "scheduler"),
        ("create", "admin@example.com"),
    ]
    assert entries[0].before == {"status": None}
    assert entries[0].after == {"status": {"admission": {"clusterQueue": "q"}}}
    assert [row["cluster_queue"] for row in column] == ["q", "q"]


async def test_a_quota_edit_after_the_decision_refuses_its_whole_tree(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    first, second, elsewhere = await _workloads(database, 3)
    seen = await _head(database)
    async with database.write(ADMIN) as tx:
        tx.put(with_spec(queue, quota=0))
    cycle = Cycle(
        writes=[
            admit(first, leading),
            admit(elsewhere, leading, queue="apart", root="apart"),
            admit(second, leading),
        ],
        seen=seen,
    )
    outcome = await commit_cycle(database, leading, cycle)
    assert outcome.refused == {uid(0), uid(1)}
    assert [change.uid for change in outcome.changes] == [uid(2)]
    assert [one.tracking.state for one in await _by_uid(database, 0, 1, 2)] == [
        "pending",
        "pending",
        "admitted",
    ]
    again = await commit_cycle(database, leading, replace(cycle, seen=await _head(database)))
    assert again.refused == {
        uid(2)
    }  # admitted meanwhile; the others are decided on current quota now


async def test_a_status_refresh_of_the_queue_refuses_nothing(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    (first,) = await _workloads(database, 1)
    seen = await _head(database)
    async with database.write(ENGINE) as tx:
        tx.put(with_status(queue, pendingWorkloads=1))
    outcome = await commit_cycle(
        database, leading, Cycle(writes=[admit(first, leading)], seen=seen)
    )
    assert outcome.refused == frozenset()


@pytest.mark.parametrize("how", ["edited", "removed", "ended without a version"])
async def test_a_workload_that_moved_loses_alone(
    database: Database, leading: Lease, queue: Manifest, how: str
) -> None:
    first, second = await _workloads(database, 2)
    seen = await _head(database)
    async with database.write(ADMIN) as tx:
        if how == "edited":
            tx.put(with_spec(first, priority=5))
        elif how == "removed":
            tx.remove("Workload", "team-a", "w0")
        else:
            tx.put(first, Tracking(state="gone"))
    cycle = Cycle(writes=[admit(first, leading), admit(second, leading)], seen=seen)
    outcome = await commit_cycle(database, leading, cycle)
    assert outcome.refused == {uid(0)}
    assert [change.uid for change in outcome.changes] == [uid(1)]
    async with database.read() as read:
        assert await ledger.spans(read, workload_uid=uid(0)) == []
        assert await decisions.history(read, uid(0)) == []


async def test_another_leader_refuses_everything(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    (first,) = await _workloads(database, 1)
    seen = await _head(database)
    await lease.release(database, leading)
    assert await lease.take(database, "other", ttl_s=60) is not None
    with pytest.raises(LeaseLost):
        await commit_cycle(database, leading, Cycle(writes=[admit(first, leading)], seen=seen))
    assert (await _by_uid(database, 0))[0].tracking == Tracking()


async def test_its_own_commit_is_known_before_the_feed_brings_it(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    first, second = await _workloads(database, 2)
    seen = await _head(database)
    outcome = await commit_cycle(
        database, leading, Cycle(writes=[admit(first, leading)], seen=seen)
    )
    late = Cycle(writes=[admit(second, leading)], seen=seen)
    assert (await commit_cycle(database, leading, late)).refused == {uid(1)}
    known = replace(late, own=outcome.roots)
    assert (await commit_cycle(database, leading, known)).refused == frozenset()


async def test_evictions_for_one_preemptor_go_together_or_not_at_all(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    objects = await _workloads(database, 4)
    stored = (await _admitted(database, leading, *objects)).stored
    a, b, c, d = (one.manifest for one in stored)
    seen = await _head(database)
    async with database.write(ADMIN) as tx:
        tx.put(with_spec(b, active=False))
    writes = [
        evict(a, leading, group="p1"),
        evict(b, leading, group="p1"),
        evict(c, leading, group="p2"),
    ]
    outcome = await commit_cycle(
        database, leading, Cycle(writes=[*writes, evict(d, leading)], seen=seen)
    )
    assert outcome.refused == {uid(0), uid(1)}
    assert outcome.roots == {}  # evictions take no quota
    states = [one.tracking.state for one in await _by_uid(database, 0, 1, 2, 3)]
    assert states == ["admitted", "admitted", "evicting", "evicting"]


async def test_the_ledger_closes_with_the_charge_whoever_ends_it(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    objects = await _workloads(database, 3)
    await _admitted(database, leading, *objects)
    held = await _by_uid(database, 0, 1, 2)
    async with database.write(ENGINE) as tx:
        tx.put(held[0].manifest, lambda t: replace(t, state="evicting"))
        tx.put(held[1].manifest, lambda t: replace(t, state="finished"))
        tx.remove("Workload", "team-a", "w2")

    async def open_spans() -> list[str]:
        async with database.read() as read:
            spans = await ledger.spans(read, cluster_queue="q")
        assert all(span.ended_at is None or span.ended_at >= span.started_at for span in spans)
        return sorted({span.name for span in spans if span.ended_at is None})

    assert await open_spans() == ["w0"]
    async with database.write(ENGINE) as tx:
        tx.put(held[0].manifest, lambda t: t.decided("pending", epoch=1))
    assert await open_spans() == []
    await _admitted(database, leading, held[0].manifest)
    async with database.read() as read:
        spans = await ledger.spans(read, workload_uid=uid(0))
    assert [(span.attempt, span.ended_at is None) for span in spans] == [
        (2, True),
        (2, True),
        (1, False),
        (1, False),
    ]


async def test_conclusions_are_kept_when_they_change(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    (first,) = await _workloads(database, 1)
    waits = Conclusion(
        workload_uid=uid(0),
        attempt=0,
        cluster_queue="q",
        outcome="pending",
        reason="NoFit",
        message="1 more",
    )

    async def conclude(**changed: Any) -> Outcome:
        write = CycleWrite(manifest=first, expects="pending", conclusion=replace(waits, **changed))
        return await commit_cycle(database, leading, Cycle(writes=[write], seen=0))

    for message in ("1 more", "1 more", "2 more", "2 more", "1 more"):
        outcome = await conclude(message=message)
        assert (outcome.refused, outcome.changes) == (frozenset(), ())
    await conclude(message="1 more", attempt=1)
    async with database.read() as tx:
        past = await decisions.history(tx, uid(0))
    assert [(one.conclusion.attempt, one.conclusion.message) for one in past] == [
        (1, "1 more"),
        (0, "1 more"),
        (0, "2 more"),
        (0, "1 more"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"roots": ()},
        {"track": lambda t: replace(t, state="admitted", epoch=1)},
        {"track": lambda t: t.decided("admitted", epoch=7)},
        {"track": lambda t: t.decided("inactive", epoch=1)},
    ],
    ids=["no roots", "no attempt", "other epoch", "charges without admission"],
)
async def test_what_would_break_the_books_is_our_bug(
    database: Database, leading: Lease, queue: Manifest, wrong: dict[str, Any]
) -> None:
    (first,) = await _workloads(database, 1)
    write = replace(admit(first, leading), **wrong)
    with pytest.raises(InvariantBroken):
        await commit_cycle(database, leading, Cycle(writes=[write], seen=await _head(database)))
    assert (await _by_uid(database, 0))[0].tracking == Tracking()


async def test_an_edit_and_an_admission_wait_for_each_other(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    """Whoever has the root first decides: the edit refuses the admission, or comes after it."""
    refused: set[bool] = set()
    current = queue
    for turn in range(20):
        (first,) = await _workloads(database, 1, first=turn)
        cycle = Cycle(writes=[admit(first, leading)], seen=await _head(database))

        async def edit(stored: Manifest, turn: int = turn) -> Manifest:
            await asyncio.sleep(0.001 * (turn % 7))
            async with database.write(ADMIN) as tx:
                tx.put(with_spec(stored, quota=turn))
            return tx.written[0]

        async def commit(cycle: Cycle = cycle, turn: int = turn) -> Outcome:
            await asyncio.sleep(0.001 * (turn % 5))
            return await commit_cycle(database, leading, cycle)

        current, outcome = await asyncio.gather(edit(current), commit())
        if outcome.refused:
            assert outcome.changes == ()
        else:
            assert outcome.changes[0].number < int(current["metadata"]["resourceVersion"])
        refused.add(bool(outcome.refused))
    assert refused == {True, False}, "both orders must have come up, or this test shows nothing"


async def test_an_edit_that_holds_the_root_makes_the_commit_wait_and_lose(
    database: Database, leading: Lease, queue: Manifest
) -> None:
    (first,) = await _workloads(database, 1)
    seen = await _head(database)
    async with database.write(ADMIN) as tx:
        await tx.rows(text("select 1 from cohort_roots where name = 'org' for update"))
        commit = asyncio.create_task(
            commit_cycle(database, leading, Cycle(writes=[admit(first, leading)], seen=seen))
        )
        await asyncio.sleep(0.2)
        assert not commit.done()
        tx.put(with_spec(queue, quota=0))
    assert (await commit).refused == {uid(0)}


async def test_many_sessions_on_one_tree_never_admit_too_much(database_url: str) -> None:
    """32 deciders on their own, possibly old, view: room for 20, then a cut to 5 while they run."""
    database = await Database.open(database_url, pool_size=16)
    try:
        leading = await lease.take(database, "all", ttl_s=60)
        assert leading is not None
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue("q", 100, cohort="org", cpu=20))
        current = tx.written[0]
        objects = await _workloads(database, 32)
        refusals = await asyncio.gather(*(_decide(database, leading, of) for of in objects))
        assert sum(refusals) > 0, "nobody was ever refused: this test shows nothing"
        assert await _charged(database) == 20
        async with database.write(ADMIN) as tx:
            tx.put(with_spec(current, quota=5))
        more = await _workloads(database, 8, first=40)
        await asyncio.gather(*(_decide(database, leading, of) for of in more))
        assert await _charged(database) == 20
    finally:
        await database.close()


async def _decide(database: Database, leading: Lease, of: Manifest) -> int:
    """Admit if there is room by what one look shows; look again when refused. Returns how often it was."""
    refused = 0
    while True:
        async with database.read() as tx:
            seen = await changes.head(tx)
            queue = await tx.get("ClusterQueue", None, "q")
            used = await tx.value(text(_USED))
        assert queue is not None
        if used >= queue["spec"]["quota"]:
            return refused
        outcome = await commit_cycle(
            database, leading, Cycle(writes=[admit(of, leading)], seen=seen)
        )
        if not outcome.refused:
            return refused
        refused += 1


async def _charged(database: Database) -> int:
    async with database.read() as tx:
        return int(await tx.value(text(_USED)))


_USED = (
    "select count(*) from workloads where state in ('admitted', 'evicting') and cluster_queue = 'q'"
)

"""The audit: who did what is kept, in the same transaction, for ever."""

import pytest
from sqlalchemy import text

from app.errors import InvariantBroken
from app.store import audit
from app.store.session import Database
from app.store.tracking import State, Tracking
from tests.store.objects import ADMIN, ENGINE, cluster_queue, uid, with_spec, with_status, workload


async def _verbs(database: Database) -> list[tuple[str, str]]:
    async with database.read() as tx:
        return [(entry.verb, entry.name) for entry in reversed(await audit.entries(tx))]


async def test_all_that_users_change_is_kept(database: Database) -> None:
    async with database.write(ADMIN) as tx:
        queue = cluster_queue("q", 1)
        queue["metadata"]["managedFields"] = [{"manager": "kubectl"}]
        tx.put(queue)
        tx.put(workload("w", 2))
    stored, _ = tx.written
    async with database.write(ADMIN) as tx:
        tx.put(with_status(stored, x=1))
    async with database.write(ADMIN) as tx:
        tx.remove("ClusterQueue", None, "q")
    assert await _verbs(database) == [
        ("create", "q"),
        ("create", "w"),
        ("update", "q"),
        ("delete", "q"),
    ]
    async with database.read() as read:
        deleted, updated, created = await audit.entries(read, kind="ClusterQueue", name="q")
        assert await audit.entries(read, before_id=created.id) == []
        assert [entry.id for entry in await audit.entries(read, limit=1)] == [deleted.id]
    assert (created.before, deleted.after) == (None, None)
    assert created.actor == ADMIN
    assert created.after is not None
    assert created.after["spec"] == {"quota": 10}
    assert "managedFields" not in created.after["metadata"]
    assert updated.before is not None
    assert updated.after is not None
    assert ("status" in updated.before, updated.after["status"]) == (False, {"x": 1})
    assert (deleted.uid, deleted.number) == (uid(1), tx.changes[0].number)


async def test_of_its_own_doing_only_what_gives_or_takes_quota(database: Database) -> None:
    async with database.write(ENGINE) as tx:
        tx.put(cluster_queue("q", 1))
        tx.put(workload("w", 2), Tracking())
    queue, work = tx.written
    async with database.write(ENGINE) as tx:
        tx.put(with_status(queue, pendingWorkloads=1))
        tx.put(with_status(work, conditions=[]))
    queue, work = tx.written
    states: list[State] = ["admitted", "evicting", "pending", "inactive", "finished"]
    for number, state in enumerate(states):
        async with database.write(ENGINE) as tx:
            tx.put(with_status(work, step=number), Tracking(state=state))
        (work,) = tx.written
    async with database.write(ENGINE) as tx:
        tx.put(with_spec(queue, quota=3))
    assert await _verbs(database) == [
        ("create", "q"),
        ("admit", "w"),
        ("evict", "w"),
        ("deactivate", "w"),
        ("update", "q"),
    ]
    async with database.read() as read:
        (evicted,) = [entry for entry in await audit.entries(read) if entry.verb == "evict"]
    assert evicted.actor == ENGINE
    assert (evicted.before, evicted.after) == (
        {"status": {"conditions": [], "step": 0}},
        {"status": {"conditions": [], "step": 1}},
    )


async def test_nobody_rewrites_it(database: Database) -> None:
    async with database.write(ADMIN) as tx:
        tx.put(cluster_queue("q", 1))
    for attack in ("update audit set actor = 'x'", "delete from audit", "truncate audit"):
        with pytest.raises(InvariantBroken, match="never changed or removed"):
            async with database.write(ADMIN) as tx:
                await tx.rows(text(attack))
    assert await _verbs(database) == [("create", "q")]

"""The work queue: what is due, in order, through its indexes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import ClauseElement, Executable, Select, text
from sqlalchemy.ext.compiler import compiles

from app.store import changes, workloads
from app.store.session import Database
from app.store.tracking import StoredWorkload, Tracking
from app.store.workloads import Synced
from tests.store.objects import ENGINE, uid, workload

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


async def _store(database: Database, *trackings: Tracking) -> None:
    async with database.write(ENGINE) as tx:
        for number, tracking in enumerate(trackings):
            tx.put(workload(f"w{number}", number), tracking)


def _names(found: Any) -> list[str]:
    return [one.manifest["metadata"]["name"] for one in found]


async def test_to_sync_has_what_is_behind_and_due_in_order(database: Database) -> None:
    behind = Tracking(decided_version=2, synced_version=1)
    await _store(
        database,
        replace(behind, next_sync_at=_at(-1)),
        replace(behind, next_sync_at=_at(-5)),
        replace(behind, next_sync_at=_at(1)),
        behind,
        Tracking(decided_version=2, synced_version=2),
    )
    async with database.read() as tx:
        assert _names(await workloads.to_sync(tx, now=NOW)) == ["w3", "w1", "w0"]
        assert _names(await workloads.to_sync(tx, now=NOW, limit=2)) == ["w3", "w1"]
        assert _names(await workloads.to_sync(tx, now=_at(1))) == ["w3", "w1", "w0", "w2"]
        assert _names(await workloads.to_sync(tx, now=NOW, busy=[uid(1)])) == ["w3", "w0"]


async def test_due_deadlines_and_the_next_time(database: Database) -> None:
    async with database.read() as tx:
        assert await workloads.next_due_at(tx) is None
    await _store(
        database,
        Tracking(next_deadline_at=_at(10)),
        Tracking(next_deadline_at=_at(-3)),
        Tracking(next_deadline_at=_at(0)),
        Tracking(),
    )
    async with database.read() as tx:
        assert _names(await workloads.due_deadlines(tx, now=NOW)) == ["w1", "w2"]
        assert await workloads.next_due_at(tx) == _at(-3)
    async with database.write(ENGINE) as tx:
        tx.put(
            workload("late", 9),
            Tracking(decided_version=1, next_sync_at=_at(-60), next_deadline_at=_at(60)),
        )
    async with database.read() as tx:
        assert await workloads.next_due_at(tx) == _at(-60)


async def test_marking_and_deferring_move_no_version(database: Database) -> None:
    behind = Tracking(decided_version=3, synced_version=1, sync_failures=2, job={"uid": uid(70)})
    await _store(database, behind, replace(behind, job=None))
    async with database.read() as tx:
        before = await changes.head(tx)
    async with database.write(ENGINE) as tx:
        await workloads.defer_sync(tx, uid(0), until=_at(30))
        await workloads.mark_synced(
            tx, [Synced(uid=uid(1), decided_version=2, job={"uid": uid(71)})]
        )
    async with database.read() as tx:
        first, second = await workloads.by_uids(tx, [uid(1), uid(0), uid(9)])
        assert await changes.head(tx) == before
    assert first.tracking == replace(behind, sync_failures=3, next_sync_at=_at(30))
    assert second.tracking == replace(
        behind, synced_version=2, sync_failures=0, job={"uid": uid(71)}
    )
    async with database.write(ENGINE) as tx:
        await workloads.mark_synced(tx, [Synced(uid=uid(n), decided_version=9) for n in (1, 0)])
        await workloads.record_jobs(tx, {uid(0): {"uid": uid(70), "active": 4}})
    async with database.read() as tx:
        first, second = await workloads.by_uids(tx, [uid(0), uid(1)])
        assert await workloads.to_sync(tx, now=NOW) == []
    assert first.tracking == replace(
        behind, synced_version=3, sync_failures=0, job={"uid": uid(70), "active": 4}
    )
    assert second.tracking == replace(
        behind, synced_version=3, sync_failures=0, job={"uid": uid(71)}
    )


async def test_an_older_mark_takes_nothing_back(database: Database) -> None:
    await _store(database, Tracking(decided_version=5, synced_version=4))
    async with database.write(ENGINE) as tx:
        await workloads.mark_synced(tx, [Synced(uid=uid(0), decided_version=2)])
    async with database.read() as tx:
        (found,) = await workloads.by_uids(tx, [uid(0)])
    assert found.tracking.synced_version == 4


async def test_a_function_of_the_tracking_meets_what_is_stored(database: Database) -> None:
    """A mark that came between reading and writing is not lost."""
    await _store(database, Tracking(decided_version=1))
    async with database.read() as look:
        (read,) = await workloads.by_uids(look, [uid(0)])
    async with database.write(ENGINE) as tx:
        await workloads.mark_synced(tx, [Synced(uid=uid(0), decided_version=1)])
    async with database.write(ENGINE) as tx:
        tx.put(read.manifest, lambda stored: stored.decided("inactive", epoch=3))
    (stored,) = tx.stored
    assert isinstance(stored, StoredWorkload)
    assert stored.tracking == Tracking(
        state="inactive", epoch=3, decided_version=2, synced_version=1
    )


async def test_the_workload_of_a_job_is_the_live_one_else_the_newest(database: Database) -> None:
    job = {"uid": uid(80), "kind": "Job", "name": "train"}
    old, new, live = workload("old", 1), workload("new", 2), workload("live", 3)
    new["metadata"]["creationTimestamp"] = "2026-01-02T04:00:00Z"
    async with database.write(ENGINE) as write:
        write.put(old, Tracking(state="finished", job=job))
        write.put(new, Tracking(state="gone", job=job))
        assert await workloads.by_job_uid(write, uid(80)) is None
    async with database.write(ENGINE) as write:
        assert _names([await workloads.by_job_uid(write, uid(80))]) == ["new"]
        assert await workloads.uids_of_jobs(write, [uid(80)]) == {uid(80): uid(2)}
        write.put(live, Tracking(state="evicting", attempt=4, job=job))
    async with database.read() as tx:
        assert _names([await workloads.by_job_uid(tx, uid(80))]) == ["live"]
        assert await workloads.uids_of_jobs(tx, [uid(80), uid(81)]) == {uid(80): uid(3)}
        jobs = [job async for page in workloads.live_jobs(tx) for job in page]
    assert jobs == [
        workloads.LiveJob(
            uid=uid(3),
            namespace="team-a",
            name="live",
            state="evicting",
            attempt=4,
            job_uid=uid(80),
            job_kind="Job",
            job_name="train",
        )
    ]


async def test_live_jobs_come_in_portions(database: Database) -> None:
    async with database.write(ENGINE) as tx:
        for number in range(2001):
            tx.put(workload(f"w{number}", number), Tracking(job={"uid": f"job-{number}"}))
    async with database.read() as read:
        pages = [len(page) async for page in workloads.live_jobs(read)]
    assert pages == [2000, 1]


class Explain(Executable, ClauseElement):
    """The plan of a statement, with its parameters bound as in earnest."""

    inherit_cache = False

    def __init__(self, query: Select[Any]) -> None:
        self.query = query


@compiles(Explain)
def _explain(element: Explain, compiler: Any, **options: Any) -> str:
    return f"explain {compiler.process(element.query, **options)}"


QUERIES = [
    (workloads._TO_SYNC, {"now": NOW, "limit": 200, "busy": [uid(1)]}, "workloads_to_sync"),
    (workloads._DUE, {"now": NOW, "limit": 200}, "workloads_due"),
    (workloads._BY_JOB, {"job_uid": "job-17"}, "workloads_by_job"),
    (changes._SINCE, {"number": 19_900, "limit": 500, "known": [19_901]}, "changes_pkey"),
]


@pytest.mark.parametrize(("query", "parameters", "index"), QUERIES, ids=[q[2] for q in QUERIES])
async def test_hot_queries_use_their_index(
    database: Database, query: Any, parameters: dict[str, Any], index: str
) -> None:
    async with database.write(ENGINE) as tx:
        await tx.rows(text(_FILL_WORKLOADS))
        await tx.rows(text(_FILL_CHANGES))
    async with database.write(ENGINE) as tx:
        await tx.rows(text("analyze workloads, changes"))
    async with database.read() as read:
        lines = [row["QUERY PLAN"] for row in await read.rows(Explain(query), parameters)]
    plan = "\n".join(lines)
    assert index in plan, plan
    assert "Seq Scan" not in plan, plan


_FILL_WORKLOADS = """
insert into workloads (uid, namespace, name, resource_version, created_at, metadata, spec, state, attempt, epoch,
                       decided_version, synced_version, sync_failures, next_deadline_at, job)
select gen_random_uuid(), 'a', 'w' || n, n, now(), '{}', '{}', 'pending', 0, 0,
       case when n % 200 = 0 then 2 else 1 end, 1, 0,
       case when n % 50 = 0 then timestamptz '2026-01-01' + n * interval '1 hour' end,
       jsonb_build_object('uid', 'job-' || n)
from generate_series(1, 20000) as n
"""
_FILL_CHANGES = """
insert into changes (number, kind, namespace, name, uid, type, object)
select n, 'Workload', 'a', 'w' || n, gen_random_uuid(), 'ADDED', '{}' from generate_series(2, 20000) as n
"""

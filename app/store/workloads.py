"""Which workloads need something done: carried out in the cluster, looked at again at a time, matched with a job?

The work queue is the rows themselves: a key is due while its decided version is ahead of its synced version and its
back-off is over, so nothing can be lost between deciding and doing. The queries here are the hot ones; each has an
index of its own (`workloads_to_sync`, `workloads_due`, `workloads_by_job`) and a test that it is used.

`mark_synced`, `defer_sync` and `record_jobs` change work-queue columns directly: they are what was done and seen, not
part of the object, so they move no resourceVersion. They touch rows in uid order, as everybody who locks several does.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Select, Text, all_, any_, bindparam, case, func, select, update

from app.store.kinds import stored_kind
from app.store.lane import Runs
from app.store.rows import read_workload
from app.store.tables import Json, Time, Uid, is_none_of
from app.store.tracking import ENDED, EPOCH, State, StoredWorkload

_KIND = stored_kind("Workload")
_table = _KIND.table
_PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """A decision that the cluster has; `job` is what was observed of the job then, if it was."""

    uid: str
    decided_version: int
    job: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """The job of a workload that has not ended: what the cluster must still show."""

    uid: str
    namespace: str
    name: str
    state: State
    attempt: int
    job_uid: str
    job_kind: str | None
    job_name: str | None


_BEHIND = _table.c.decided_version > _table.c.synced_version
_LIVE = is_none_of(_table.c.state, sorted(ENDED))

_TO_SYNC = (
    select(_table)
    .where(
        _BEHIND,
        _table.c.next_sync_at <= bindparam("now", type_=Time),
        _table.c.uid != all_(bindparam("busy", type_=ARRAY(Uid))),
    )
    .order_by(_table.c.next_sync_at, _table.c.uid)
    .limit(bindparam("limit"))
)
_DUE = (
    select(_table)
    .where(_table.c.next_deadline_at <= bindparam("now", type_=Time))
    .order_by(_table.c.next_deadline_at, _table.c.uid)
    .limit(bindparam("limit"))
)
_BY_JOB = (
    select(_table)
    .where(_table.c.job_uid == bindparam("job_uid"))
    .order_by(_LIVE.desc(), _table.c.created_at.desc(), _table.c.uid)
    .limit(1)
)
_BY_JOBS = (
    select(_table.c.uid, _table.c.job_uid)
    .where(_table.c.job_uid == any_(bindparam("job_uids", type_=ARRAY(Text))))
    .order_by(_LIVE, _table.c.created_at, _table.c.uid.desc())
)
_BY_UIDS = (
    select(_table)
    .where(_table.c.uid == any_(bindparam("uids", type_=ARRAY(Uid))))
    .order_by(_table.c.uid)
)
_LIVE_JOB_COLUMNS = (
    *("uid", "namespace", "name", "state", "attempt"),
    *("job_uid", "job_kind", "job_name"),
)
_LIVE_JOBS = (
    select(*(_table.c[name] for name in _LIVE_JOB_COLUMNS))
    .where(_LIVE, _table.c.job_uid.is_not(None), _table.c.uid > bindparam("after", type_=Uid))
    .order_by(_table.c.uid)
    .limit(_PAGE)
)
_NEXT_DUE = select(
    func.least(
        select(func.min(_table.c.next_sync_at)).where(_BEHIND).scalar_subquery(),
        select(func.min(_table.c.next_deadline_at)).scalar_subquery(),
    )
)
_MARK_SYNCED = (
    update(_table)
    .where(_table.c.uid == bindparam("of_uid", type_=Uid))
    .values(
        synced_version=func.least(
            func.greatest(_table.c.synced_version, bindparam("version")), _table.c.decided_version
        ),
        next_sync_at=case(
            (_table.c.decided_version <= bindparam("version"), EPOCH), else_=_table.c.next_sync_at
        ),
        sync_failures=0,
        job=func.coalesce(bindparam("seen", type_=Json), _table.c.job),
    )
)
_DEFER_SYNC = (
    update(_table)
    .where(_table.c.uid == bindparam("of_uid", type_=Uid))
    .values(next_sync_at=bindparam("until", type_=Time), sync_failures=_table.c.sync_failures + 1)
)
_RECORD_JOB = (
    update(_table)
    .where(_table.c.uid == bindparam("of_uid", type_=Uid))
    .values(job=bindparam("seen", type_=Json))
)


async def by_uids(tx: Runs, uids: Sequence[str]) -> Sequence[StoredWorkload]:
    """Those of `uids` that exist, in uid order, not locked."""
    return await _all(tx, _BY_UIDS, {"uids": list(uids)})


async def by_job_uid(tx: Runs, job_uid: str) -> StoredWorkload | None:
    """The live workload of a job; where there is none, the newest that ended."""
    found = await _all(tx, _BY_JOB, {"job_uid": job_uid})
    return found[0] if found else None


async def uids_of_jobs(tx: Runs, job_uids: Sequence[str]) -> Mapping[str, str]:
    """For each job that has or had a workload, its uid: of the live one, or else of the newest that ended."""
    found = await tx.rows(_BY_JOBS, {"job_uids": list(job_uids)})  # the last of a job wins
    return {row["job_uid"]: row["uid"] for row in found}


async def to_sync(
    tx: Runs, *, now: datetime, limit: int = 200, busy: Sequence[str] = ()
) -> Sequence[StoredWorkload]:
    """Keys whose decision the cluster does not have yet and may be sent now; the longest due first.

    Those that somebody is `busy` with are left out.
    """
    return await _all(tx, _TO_SYNC, {"now": now, "limit": limit, "busy": list(busy)})


async def due_deadlines(tx: Runs, *, now: datetime, limit: int = 200) -> Sequence[StoredWorkload]:
    """Workloads to look at again because a time has come; the longest due first."""
    return await _all(tx, _DUE, {"now": now, "limit": limit})


async def next_due_at(tx: Runs) -> datetime | None:
    """The earliest time at which one of the two queries above has, or will have, a row; None: never as things are."""
    earliest: datetime | None = await tx.value(_NEXT_DUE)
    return earliest


async def live_jobs(tx: Runs) -> AsyncIterator[Sequence[LiveJob]]:
    """All of them, in uid order and portions: what a comparison with the cluster starts from."""
    after = "00000000-0000-0000-0000-000000000000"
    while True:
        rows = await tx.rows(_LIVE_JOBS, {"after": after})
        if rows:
            yield [LiveJob(**row) for row in rows]
        if len(rows) < _PAGE:
            return
        after = rows[-1]["uid"]


async def mark_synced(tx: Runs, done: Sequence[Synced]) -> None:
    """The cluster has these decisions; a newer one made meanwhile stays to be synced."""
    await _each(
        tx,
        _MARK_SYNCED,
        [{"of_uid": one.uid, "version": one.decided_version, "seen": one.job} for one in done],
    )


async def defer_sync(tx: Runs, uid: str, *, until: datetime) -> None:
    """Syncing failed: not again before `until`, and one failure more."""
    await _each(tx, _DEFER_SYNC, [{"of_uid": uid, "until": until}])


async def record_jobs(tx: Runs, seen: Mapping[str, Mapping[str, Any]]) -> None:
    """What was observed of jobs, by workload uid."""
    await _each(tx, _RECORD_JOB, [{"of_uid": uid, "seen": job} for uid, job in seen.items()])


async def _each(tx: Runs, statement: Any, rows: list[dict[str, Any]]) -> None:
    await tx.each(statement, sorted(rows, key=lambda row: str(row["of_uid"])))


async def _all(
    tx: Runs, query: Select[Any], parameters: Mapping[str, Any]
) -> Sequence[StoredWorkload]:
    return [read_workload(_KIND, row) for row in await tx.rows(query, parameters)]

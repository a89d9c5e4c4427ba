"""What the cluster shows of jobs becomes rows: one transaction a batch, each job judged by the repair matrix.

The same verb serves the observers, the start-up comparison and sync, which looks at one live job. Only the leader
calls it: every transaction carries its lease. A job that no workload can stand for (no valid pod set, say) has none,
stays suspended and is returned as refused, for its owner to be told.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from app.core.manifests import Manifest
from app.core.metadata import is_deleting, moment
from app.core.policy import DEFAULT, Policy
from app.errors import Invalid
from app.intake.priorities import priorities
from app.intake.repair import JOB_DELETED, JOB_UNSUSPENDED, Repair
from app.jobs.adapter import JobAdapter
from app.jobs.identity import controller_owner, queue_name
from app.store import workloads
from app.store.audit import Actor
from app.store.lease import Lease, guard
from app.store.session import Database, WriteTx
from app.store.tracking import StoredWorkload, Tracking

T = TypeVar("T")

NO_QUEUE = "The job names no queue, and no job without one may run here."

OBSERVER = Actor("system", "observer")

TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    job: Manifest
    error: Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIntake:
    """The verbs for jobs of one kind. `manages` says whether jobs of a namespace are ours at all."""

    database: Database
    lease: Lease
    adapter: JobAdapter
    clock: Callable[[], datetime]
    new_uid: Callable[[], str]
    manages: Callable[[str], bool]
    priority_of: Callable[[str], int | None]
    policy: Policy = DEFAULT

    async def observe(self, jobs: Sequence[Manifest]) -> list[Refused]:
        """Record what these jobs look like now; repeated and late observations are harmless."""
        return await self._run(lambda tx: self._observe(tx, jobs)) if jobs else []

    async def vanished(self, job_uids: Sequence[str]) -> None:
        """These jobs are gone. What holds no quota goes at once; the rest when its pods are seen to be gone."""

        async def work(tx: WriteTx) -> None:
            repair = await self._repair(tx)
            for row in (await self._rows(tx, job_uids)).values():
                _vanish(tx, row, repair)

        await self._run(work)

    async def release(self, uid: str, attempt: int, job: Manifest) -> None:
        """The job of an evicted workload was seen stopped and restored: give its quota back."""

        async def work(tx: WriteTx) -> None:
            row = await _locked(tx, uid)
            if row and row.tracking.state == "evicting" and row.tracking.attempt == attempt:
                _release(tx, row, job, await self._repair(tx))

        await self._run(work)

    async def give_up(self, uid: str, attempt: int, why: str) -> None:
        """The job cannot be started as it is: stop trying until a person reactivates its workload."""

        async def work(tx: WriteTx) -> None:
            row = await _locked(tx, uid)
            if row and row.tracking.state == "admitted" and row.tracking.attempt == attempt:
                tx.put(*(await self._repair(tx)).deactivate(row, why))

        await self._run(work)

    async def take_back(self, uid: str, attempt: int) -> None:
        """The job runs, but not as this attempt would have started it: it must stop and wait for its turn again."""
        words = "The job was unsuspended, and not by its admission"

        async def work(tx: WriteTx) -> None:
            row = await _locked(tx, uid)
            if row and row.tracking.state == "admitted" and row.tracking.attempt == attempt:
                tx.put(*(await self._repair(tx)).evict(row, JOB_UNSUSPENDED, words))

        await self._run(work)

    async def keep_template(self, uid: str, template: Mapping[str, object]) -> None:
        """Remember the job's own template before a start changes it."""

        async def work(tx: WriteTx) -> None:
            row = await _locked(tx, uid)
            if row is not None:
                tx.put(row.manifest, dataclasses.replace(row.tracking, template=template))

        await self._run(work)

    async def _run(self, work: Callable[[WriteTx], Awaitable[T]]) -> T:
        async def guarded(tx: WriteTx) -> T:
            await guard(tx, self.lease)
            return await work(tx)

        result, _ = await self.database.run(OBSERVER, guarded)
        return result

    async def _observe(self, tx: WriteTx, jobs: Sequence[Manifest]) -> list[Refused]:
        rows = await self._rows(tx, [job["metadata"]["uid"] for job in jobs])
        repair = await self._repair(tx)
        refused = []
        for place, job in enumerate(sorted(jobs, key=_arrival)):
            row = rows.get(job["metadata"]["uid"])
            try:
                if row is not None:
                    _follow(tx, row, job, repair)
                elif self._must_wait(job):
                    refused.append(Refused(job=job, error=Invalid(NO_QUEUE)))
                elif self._enlists(job):
                    created_at = _created_at(job, repair.now) + place * TICK
                    manifest, tracking = repair.enlist(job, self.new_uid(), created_at)
                    tx.put(manifest, tracking)
            except Invalid as error:
                refused.append(Refused(job=job, error=error))
        return refused

    def _enlists(self, job: Manifest) -> bool:
        facts = self.adapter.facts(job)
        is_live = not facts.deleting and not facts.finished
        return bool(facts.queue) and is_live and self.manages(facts.namespace)

    def _must_wait(self, job: Manifest) -> bool:
        """Where jobs without a queue are managed too, one that runs is suspended until it names one."""
        facts = self.adapter.facts(job)
        is_live = not facts.deleting and not facts.finished and not facts.suspended
        is_own = not facts.queue and controller_owner(job) is None
        rules = self.policy.managed
        return rules.without_queue_name and is_own and is_live and self.manages(facts.namespace)

    async def _rows(self, tx: WriteTx, job_uids: Sequence[str]) -> dict[str, StoredWorkload]:
        """The rows of these jobs, locked, by the uid of the job."""
        uids = await workloads.uids_of_jobs(tx, job_uids)
        locked = await tx.get_locked("Workload", uids.values())
        return {
            row.tracking.job["uid"]: row
            for row in locked
            if isinstance(row, StoredWorkload) and row.tracking.job
        }

    async def _repair(self, tx: WriteTx) -> Repair:
        return Repair(
            adapter=self.adapter,
            epoch=self.lease.epoch,
            now=self.clock(),
            priority_of=await priorities(tx, self.priority_of),
            policy=self.policy,
        )


async def forget(database: Database, lease: Lease, uids: Sequence[str]) -> None:
    """The jobs of these workloads are gone and so are their pods: they go too, and their quota with them."""

    async def work(tx: WriteTx) -> None:
        await guard(tx, lease)
        for row in await tx.get_locked("Workload", uids):
            if isinstance(row, StoredWorkload):
                _remove(tx, row)

    await database.run(OBSERVER, work)


def _follow(tx: WriteTx, row: StoredWorkload, job: Manifest, repair: Repair) -> None:
    """An existing row follows its job; one that waits for a job which has left, or cannot be queued, goes."""
    waits = row.tracking.state in ("pending", "inactive")
    if waits and _has_left(job):
        _remove(tx, row)
        return
    try:
        _put(tx, row, repair.apply(job, row))
    except Invalid:
        if waits:
            _remove(tx, row)
        raise


def _release(tx: WriteTx, row: StoredWorkload, job: Manifest, repair: Repair) -> None:
    """Back in line, unless there is nothing that could be in line; the quota is free in any case."""
    if _has_left(job):
        _remove(tx, row)
        return
    try:
        _put(tx, row, repair.release(job, row))
    except Invalid:
        _remove(tx, row)


def _has_left(job: Manifest) -> bool:
    """It is out of its queue, or on its way out of the cluster."""
    return not queue_name(job) or is_deleting(job)


def _put(tx: WriteTx, row: StoredWorkload, wanted: tuple[Manifest, Tracking]) -> None:
    if wanted != (row.manifest, row.tracking):
        tx.put(*wanted)


def _vanish(tx: WriteTx, row: StoredWorkload, repair: Repair) -> None:
    """The job is gone: its workload goes too, unless it holds quota, which its pods may still use."""
    if not row.tracking.charged:
        _remove(tx, row)
    elif row.tracking.state == "admitted":
        tx.put(*repair.evict(row, JOB_DELETED, "The job was deleted"))


def _remove(tx: WriteTx, row: StoredWorkload) -> None:
    metadata = row.manifest["metadata"]
    tx.remove("Workload", metadata["namespace"], metadata["name"])


async def _locked(tx: WriteTx, uid: str) -> StoredWorkload | None:
    found = await tx.get_locked("Workload", [uid])
    return found[0] if found and isinstance(found[0], StoredWorkload) else None


def _arrival(job: Manifest) -> tuple[str, int, str]:
    """Jobs of one batch in the order in which they came to be."""
    metadata = job["metadata"]
    return metadata["creationTimestamp"], int(metadata["resourceVersion"]), metadata["uid"]


def _created_at(job: Manifest, seen_at: datetime) -> datetime:
    """Within the second that the job says, and the later the later it was seen, however late that is.

    So those of one second keep the order in which they were seen, and one that was missed for a while loses no place.
    """
    second = moment(job["metadata"]["creationTimestamp"])
    late_s = max(0.0, (seen_at - second).total_seconds())
    return second + timedelta(seconds=late_s / (1 + late_s))

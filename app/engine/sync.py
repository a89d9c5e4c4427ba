"""Carries decisions out: moves each job that is behind toward what was decided for it.

A key is due while its row's decided version is ahead of the synced one; whoever takes it reads the row and the live
job, and sends what the adapter says comes next. Every write to the cluster carries the job's uid and resourceVersion,
so it lands on what was looked at or not at all; every write to Postgres carries the lease. Doing a key twice is
harmless, a crash between any two steps leaves the key due. No call to the cluster happens inside a transaction.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from app.engine.outcomes import Defer, Done, Gone, Outcome, Settled
from app.engine.stepper import Stepper
from app.errors import AppError, LeaseLost
from app.intake.jobs import forget
from app.store import workloads
from app.store.audit import Actor
from app.store.lease import Lease, guard
from app.store.session import Database
from app.store.tracking import StoredWorkload
from app.store.workloads import Synced

log = structlog.get_logger("engine.sync")

ACTOR = Actor("system", "sync")
NAP_S = 1.0
AT_ONCE = 32
"""Jobs worked on at a time."""
FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 60.0


@dataclass(slots=True, kw_only=True)
class SyncLoop:
    database: Database
    lease: Lease
    clock: Callable[[], datetime]
    wake: asyncio.Event
    stepper: Stepper
    released: Callable[[], None]
    """Called when rows moved: the cycle may have room now."""
    _busy: dict[str, None] = field(default_factory=dict)
    _finished: list[tuple[StoredWorkload, Outcome]] = field(default_factory=list)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """A run knows nothing of the one before: what that had in hand is still due, for the rows say so."""
        self._busy, self._finished, self._ready = {}, [], asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._record())
            await self._dispatch(group)

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        slots = asyncio.Semaphore(AT_ONCE)
        while True:
            self.wake.clear()
            due = await self._due()
            for row in due:
                await slots.acquire()
                self._busy[_uid(row)] = None
                group.create_task(self._work(row, slots))
            if not due:
                await self._sleep()

    async def _due(self) -> list[StoredWorkload]:
        async with self.database.read() as tx:
            busy = list(self._busy)
            return list(await workloads.to_sync(tx, now=self.clock(), limit=AT_ONCE * 2, busy=busy))

    async def _sleep(self) -> None:
        try:
            async with asyncio.timeout(NAP_S):
                await self.wake.wait()
        except TimeoutError:
            pass

    async def _work(self, row: StoredWorkload, slots: asyncio.Semaphore) -> None:
        """One step of one key. What fails is tried again later; it must not hold up the others."""
        try:
            outcome = await self.stepper.step(row)
        except LeaseLost:
            raise
        except AppError as error:
            outcome = self._later(row, error.message, getattr(error, "retry_after_s", None))
        except Exception:
            log.exception("sync.crashed", workload=row.manifest["metadata"]["name"])
            outcome = self._later(row, "an unexpected error", None)
        finally:
            slots.release()
        self._finished.append((row, outcome))
        self._ready.set()

    def _later(self, row: StoredWorkload, why: str, asked_s: float | None) -> Defer:
        delay_s = min(FIRST_DELAY_S * 2 ** min(row.tracking.sync_failures, 12), LONGEST_DELAY_S)
        log.warning("sync.deferred", workload=row.manifest["metadata"]["name"], error=why)
        return Defer(until=self.clock() + timedelta(seconds=max(delay_s, asked_s or 0)))

    async def _record(self) -> None:
        """Write down what was done, all that is there in one transaction; a key stays busy until then."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            finished, self._finished = self._finished, []
            await self._write(finished)
            if gone := [_uid(row) for row, one in finished if isinstance(one, Gone)]:
                await forget(self.database, self.lease, gone)
            for row, _ in finished:
                self._busy.pop(_uid(row), None)
            self.wake.set()
            if any(isinstance(outcome, Settled | Gone) for _, outcome in finished):
                self.released()

    async def _write(self, finished: list[tuple[StoredWorkload, Outcome]]) -> None:
        done = [
            Synced(
                uid=_uid(row),
                decided_version=row.tracking.decided_version,
                job=dict(outcome.job) if outcome.job is not None else None,
            )
            for row, outcome in finished
            if isinstance(outcome, Done)
        ]
        deferred = [(row, one) for row, one in finished if isinstance(one, Defer)]
        if not done and not deferred:
            return
        async with self.database.write(ACTOR) as tx:
            await guard(tx, self.lease)
            await workloads.mark_synced(tx, done)
            for row, one in sorted(deferred, key=lambda pair: _uid(pair[0])):
                await workloads.defer_sync(tx, _uid(row), until=one.until)


def _uid(row: StoredWorkload) -> str:
    return str(row.manifest["metadata"]["uid"])

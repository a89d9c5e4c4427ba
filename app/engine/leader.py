"""Leads while it holds the lease, and makes sure not to act a moment longer.

The loops run only inside `lead`. Renewals go over a database connection of their own; each notes the monotonic time
*before* it asks, and the term is believed to last from then, less a margin. A leader that cannot renew in time stops
its loops; should the event loop itself hang, a watchdog thread ends the process, because nothing else could still stop
it. A write that was under way all the same is refused by the guard in its transaction.
"""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from app.engine.supervisor import leaves
from app.errors import AppError, LeaseLost
from app.store import lease as leases
from app.store.lease import Lease
from app.store.session import Database

log = structlog.get_logger("engine.leader")

EXIT_CODE = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    ttl_s: float = 10.0
    renew_s: float = 3.0
    margin_s: float = 2.0
    retry_s: float = 2.0


@dataclass(slots=True)
class Leader:
    """`database` is used for nothing else."""

    database: Database
    holder: str
    term: Term = field(default_factory=Term)

    async def lead_for_ever(self, body: Callable[[Lease], Awaitable[None]]) -> None:
        """Stand by, lead, stand by again; returns only by cancellation."""
        while True:
            asked_at = time.monotonic()
            lease = await self._take()
            if lease is None:
                await asyncio.sleep(self.term.retry_s)
                continue
            log.info("leading", holder=self.holder, epoch=lease.epoch)
            try:
                await self._lead(lease, asked_at, body)
            except LeaseLost as error:
                log.warning("leading.lost", epoch=lease.epoch, error=error.message)

    async def _take(self) -> Lease | None:
        try:
            return await leases.take(self.database, self.holder, ttl_s=self.term.ttl_s)
        except AppError as error:
            log.warning("lease.unreachable", error=error.message)
            return None

    async def _lead(
        self, lease: Lease, asked_at: float, body: Callable[[Lease], Awaitable[None]]
    ) -> None:
        watchdog = _Watchdog(asked_at + self.term.ttl_s - self.term.margin_s)
        work = asyncio.ensure_future(body(lease))
        renewals = asyncio.create_task(self._renew(lease, watchdog))
        try:
            await asyncio.wait({work, renewals}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, renewals):
                task.cancel()
            ended = await asyncio.gather(work, renewals, return_exceptions=True)
            watchdog.stop()
            await self._release(lease)
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise _lost(outcome)

    async def _renew(self, lease: Lease, watchdog: "_Watchdog") -> None:
        while True:
            await asyncio.sleep(self.term.renew_s)
            asked_at = time.monotonic()
            try:
                async with asyncio.timeout_at(_loop_time(watchdog.deadline)):
                    await self._renew_once(lease)
            except TimeoutError:
                raise LeaseLost("the lease could not be renewed in time") from None
            watchdog.deadline = asked_at + self.term.ttl_s - self.term.margin_s

    async def _renew_once(self, lease: Lease) -> None:
        """Until it is renewed, lost, or out of time."""
        while True:
            try:
                return await leases.renew(self.database, lease)
            except LeaseLost:
                raise
            except AppError as error:
                log.warning("lease.unreachable", error=error.message)
                await asyncio.sleep(self.term.renew_s / 6)

    async def _release(self, lease: Lease) -> None:
        """Let a standby take over at once; if that fails, it takes over when the term ends."""
        try:
            async with asyncio.timeout(self.term.margin_s):
                await leases.release(self.database, lease)
        except (AppError, TimeoutError):
            return


class _Watchdog:
    """Ends the process when the monotonic clock passes `deadline`."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, name="lease-watchdog", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _watch(self) -> None:
        """A little later than the loops stop themselves, since that is the better way to go."""
        while not self._stopped.wait(0.25):
            if time.monotonic() > self.deadline + 1.0:
                os.write(2, b"sluice: the event loop hung past the end of the lease; exiting\n")
                os._exit(EXIT_CODE)


def _loop_time(monotonic: float) -> float:
    return asyncio.get_running_loop().time() + monotonic - time.monotonic()


def _lost(outcome: Exception) -> Exception:
    """A task group wraps what ended it; losing the lease is what matters then."""
    lost = (cause for cause in leaves(outcome) if isinstance(cause, LeaseLost))
    return next(lost, None) or outcome

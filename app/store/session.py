"""The database, its two kinds of transaction and the only commit.

A read sees one moment (REPEATABLE READ, READ ONLY). A write runs at READ COMMITTED with explicit row locks, collects
puts and removals, and flushes them as its last step (`app.store.flush`); leaving the block without an error commits,
anything else leaves nothing behind. An object is changed by reading it (with `lock=True`, or at a version that the put
then carries) and putting it back; nobody sends UPDATEs past that but the work-queue columns in `app.store.workloads`.

Every connection refuses to wait or work longer than `Limits` says, so that a frozen process holds no lock for long.
No call to a cluster, and no waiting for anything but Postgres, belongs inside a transaction.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

from sqlalchemy import Executable, text

from app.core.manifests import Manifest
from app.errors import AppError
from app.store import objects
from app.store.audit import Actor
from app.store.changes import Change
from app.store.connect import Limits, open_pool
from app.store.failures import Contended, translated
from app.store.flush import Flushed, flush
from app.store.lane import Begin, Lane, Parameters, Row, open_lane
from app.store.listen import listen
from app.store.tracking import Retrack, Stored, Tracking
from app.store.unit import Unit

T = TypeVar("T")

_READ: Begin = "begin isolation level repeatable read, read only"
_ALIVE = text("select 1")

__all__ = ["Actor", "Database", "Limits", "ReadTx", "WriteTx"]


class _Tx:
    """Statements, for the modules of the store; nobody else has any."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def rows(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Sequence[Row]:
        return await self._lane.rows(statement, parameters)

    async def value(self, statement: Executable, parameters: Parameters | None = None) -> Any:
        return await self._lane.value(statement, parameters)

    async def each(self, statement: Executable, parameters: Sequence[Parameters]) -> None:
        await self._lane.each(statement, parameters)


class ReadTx(_Tx):
    """One consistent look at the database."""

    async def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        found = await objects.fetch(self, kind, namespace, name, lock=False)
        return None if found is None else found.manifest

    async def list(self, kind: str, namespace: str | None = None) -> Sequence[Manifest]:
        """All objects of a kind, or those of one namespace, ordered by namespace and name."""
        return [
            stored.manifest
            async for page in objects.pages(self, kind, namespace)
            for stored in page
        ]

    def pages(self, kind: str, namespace: str | None = None) -> AsyncIterator[Sequence[Stored]]:
        """Like `list`, in portions and with the tracking of workloads."""
        return objects.pages(self, kind, namespace)


class WriteTx(_Tx):
    """A transaction that may write; what is put here reaches Postgres when the block ends."""

    def __init__(self, lane: Lane, actor: Actor, *, dry_run: bool) -> None:
        super().__init__(lane)
        self.actor = actor
        self.dry_run = dry_run
        self._unit = Unit()
        self._flushed = Flushed()

    async def get(
        self, kind: str, namespace: str | None, name: str, *, lock: bool = False
    ) -> Manifest | None:
        found = await self.get_stored(kind, namespace, name, lock=lock)
        return None if found is None else found.manifest

    async def get_stored(
        self, kind: str, namespace: str | None, name: str, *, lock: bool = False
    ) -> Stored | None:
        """Like `get`, with the tracking of a workload."""
        found = await objects.fetch(self, kind, namespace, name, lock=lock)
        if found is not None and lock:
            self._unit.hold(found)
        return found

    async def get_locked(self, kind: str, uids: Iterable[str]) -> Sequence[Stored]:
        """Several objects by uid, locked in uid order; those that are gone are missing."""
        found = await objects.fetch_locked(self, kind, uids)
        for stored in found:
            self._unit.hold(stored)
        return found

    async def list(self, kind: str, namespace: str | None = None) -> Sequence[Manifest]:
        """As of now, page by page; not one moment as in a read."""
        return [
            stored.manifest
            async for page in objects.pages(self, kind, namespace)
            for stored in page
        ]

    def put(self, manifest: Manifest, tracking: Tracking | Retrack | None = None) -> None:
        """Store the object at the end of the transaction.

        With a `metadata.resourceVersion` it changes exactly that version (`Conflict` if another is stored), without
        one it is new (`AlreadyExists` if its name is taken). A workload without `tracking` keeps what it has; where
        the row was not read with a lock, give a function of the stored tracking. An object equal to what is stored is
        not written. The manifest must not be changed afterwards.
        """
        self._unit.put(manifest, tracking)

    def remove(self, kind: str, namespace: str | None, name: str) -> None:
        """Remove the object at the end of the transaction; `NotFound` then, if there is none."""
        self._unit.remove(kind, namespace or "", name)

    def bump_roots(self, names: Iterable[str]) -> None:
        """Make decisions that rely on these cohort trees and were taken before this commit lose.

        Edits of queues, cohorts and flavors do so by themselves; admissions call it.
        """
        self._unit.bumps.update(names)

    @property
    def written(self) -> tuple[Manifest, ...]:
        """After the commit: what was put or removed, in that order, as stored; unchanged ones as they were."""
        return tuple(stored.manifest for stored in self._flushed.written)

    @property
    def stored(self) -> tuple[Stored, ...]:
        """Like `written`, with the tracking of workloads."""
        return self._flushed.written

    @property
    def changes(self) -> tuple[Change, ...]:
        """After the commit: what the feed got from it."""
        return self._flushed.changes

    @property
    def roots(self) -> Mapping[str, int]:
        """After the commit: the cohort roots that it moved, with their new versions."""
        return self._flushed.roots

    async def finish(self) -> None:
        """Flush and commit; called once, by `Database.write`."""
        self._flushed = await flush(self, self._unit, self.actor, dry_run=self.dry_run)
        if not self.dry_run:
            await self._lane.commit()


class Database:
    """Connections to one Postgres database; one for each process and purpose."""

    def __init__(self, url: str, pool: Any) -> None:
        self.url = url
        self._pool = pool
        self._background: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        application_name: str = "sluice",
        pool_size: int = 5,
        limits: Limits | None = None,
    ) -> Self:
        """Connect, so that a wrong URL or a refusing server is known at once."""
        with translated():
            pool = await open_pool(
                url, application_name=application_name, size=pool_size, limits=limits or Limits()
            )
        return cls(url, pool)

    async def close(self) -> None:
        """Wait for what cancelled callers left running, then close all connections."""
        while self._background:
            await asyncio.wait(set(self._background))
        await self._pool.close()

    def listen(self, *, poll_s: float = 3.0) -> AsyncGenerator[int | None, None]:
        """Hints that something was committed; see `app.store.listen`."""
        return listen(self.url, poll_s=poll_s)

    async def ready(self) -> bool:
        """Postgres answers now."""
        try:
            async with self.read() as tx:
                await tx.value(_ALIVE)
        except AppError:
            return False
        return True

    @asynccontextmanager
    async def read(self) -> AsyncIterator[ReadTx]:
        lane = await open_lane(self._pool, _READ, self._background)
        try:
            yield ReadTx(lane)
        finally:
            await lane.close()

    @asynccontextmanager
    async def write(self, actor: Actor, *, dry_run: bool = False) -> AsyncIterator[WriteTx]:
        """Commit when the block ends without an error; a dry run checks everything and keeps nothing."""
        lane = await open_lane(self._pool, "begin", self._background)
        try:
            tx = WriteTx(lane, actor, dry_run=dry_run)
            yield tx
            await tx.finish()
        finally:
            await lane.close()

    async def run(
        self,
        actor: Actor,
        work: Callable[[WriteTx], Awaitable[T]],
        *,
        dry_run: bool = False,
        attempts: int = 5,
    ) -> tuple[T, WriteTx]:
        """Run `work` in a write transaction, again on a fresh one when others were in the way.

        `work` must be repeatable: read, compute, put. Returns its result and the committed transaction.
        """
        for attempt in range(attempts):
            try:
                async with self.write(actor, dry_run=dry_run) as tx:
                    result = await work(tx)
            except Contended:
                if attempt == attempts - 1:
                    raise
                await asyncio.sleep(0.01 * 2**attempt)
            else:
                return result, tx
        raise AssertionError("unreachable: the last attempt returns or raises")

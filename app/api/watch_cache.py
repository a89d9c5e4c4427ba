"""All objects of one database in the memory of an API worker, fed by the change log.

Lists and watches cost Postgres one number: the newest committed one, which the cache must have reached before it
answers, so that a list is consistent and everybody reads their own writes. While Postgres is away, reads are answered
from what was known; writes fail, and say why. When the log no longer reaches back to where the cache stands, it is
loaded anew and open watches end with Gone.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

import structlog

from app.api.patience import Patience
from app.apiserver.shelf import Shelf
from app.apiserver.storage import Listing, WatchBatch, WatchEvent
from app.core.manifests import Manifest
from app.errors import AppError, Gone, Unavailable
from app.store import changes
from app.store.changes import Change
from app.store.kinds import KINDS
from app.store.listen import listen
from app.store.session import Database

log = structlog.get_logger("api.cache")

PORTION = 1000
LOG_LIMIT = 10_000
PROGRESS_S = 5.0
PATIENCE_S = 5.0
"""How long a read waits for the cache to reach the newest number."""


class WatchCache:
    def __init__(self, database: Database, patience: Patience) -> None:
        self._database = database
        self._patience = patience
        self._shelves = {kind: Shelf() for kind in KINDS}
        self._moved = asyncio.Event()
        self._wake = asyncio.Event()
        self.seen = 0
        self._owed = 0  # what this worker has acknowledged must be here before it answers a read
        self.loaded = asyncio.Event()

    # Feeding

    async def run(self) -> None:
        """Load and follow, until cancelled or until something fails; then run it again."""
        if not self.loaded.is_set() or await self._went_back():
            await self._load()
        hearing = asyncio.create_task(self._hear())
        hearing.add_done_callback(lambda _: self._wake.set())
        try:
            while not hearing.done():
                self._wake.clear()
                await self._catch_up()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PROGRESS_S):
                        await self._wake.wait()
        finally:
            hearing.cancel()
            await asyncio.wait({hearing})
        hearing.result()

    async def _hear(self) -> None:
        async with contextlib.aclosing(listen(self._database.url)) as hints:
            async for _ in hints:
                self._wake.set()

    async def _went_back(self) -> bool:
        """While it was away, Postgres was restored from an older copy: its numbers will come a second time."""
        return await self._newest() < self.seen

    async def _load(self) -> None:
        shelves = {kind: Shelf() for kind in KINDS}
        async with self._database.read() as tx:
            seen = await changes.head(tx)
            for kind, shelf in shelves.items():
                async for page in tx.pages(kind):
                    for stored in page:
                        shelf.fill(stored.manifest)
                shelf.horizon = seen
        for kind, shelf in shelves.items():
            self._shelves[kind].close(max(seen, self.seen + 1))  # nobody goes on from there
            self._shelves[kind] = shelf
        self._owed = min(self._owed, seen)
        self._advance(seen)
        self.loaded.set()
        log.info("cache.loaded", seen=seen)

    async def _catch_up(self) -> None:
        while True:
            try:
                async with self._database.read() as tx:
                    found = await changes.since(tx, self.seen, PORTION)
            except Gone:
                return await self._load()
            for change in found:
                self._apply(change)
            if found:
                self._advance(found[-1].number)
            if len(found) < PORTION:
                return None

    def _apply(self, change: Change) -> None:
        shelf = self._shelves.get(change.kind)
        if shelf is None:
            return
        old = shelf.find(change.namespace, change.name)
        shelf.record(WatchEvent(change.type, change.object, old, change.number), LOG_LIMIT)

    def _advance(self, seen: int) -> None:
        self.seen = seen
        self._moved.set()
        self._moved = asyncio.Event()

    def expect(self, number: int) -> None:
        """A change was committed here: do not wait for the hint, and answer nothing older any more."""
        self._owed = max(self._owed, number)
        self._wake.set()

    # Reading

    def peek(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """What is known now, perhaps a moment old; never waits."""
        return self._shelves[kind].find(namespace, name)

    async def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        await self._fresh()
        return self._shelves[kind].find(namespace or "", name)

    async def list(self, kind: str, namespace: str | None) -> Listing:
        await self._fresh()
        shelf = self._shelves[kind]
        items: Sequence[Manifest] = shelf.sorted()
        if namespace is not None:
            items = [one for one in items if one["metadata"].get("namespace") == namespace]
        return Listing(items=items, resource_version=self.seen, oldest=shelf.horizon)

    async def watch(
        self, kind: str, namespace: str | None, since: int
    ) -> AsyncGenerator[WatchBatch, None]:
        await self.reach(since)
        shelf = self._shelves[kind]
        while True:
            moved, told = self._moved, self.seen
            events = shelf.since(since)
            if namespace is not None:
                events = [
                    one for one in events if one.object["metadata"].get("namespace") == namespace
                ]
            yield WatchBatch(told, events)
            since = told
            if self._moved is moved:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PROGRESS_S):
                        await moved.wait()

    async def reach(self, number: int) -> None:
        """Wait until everything up to `number` is here."""
        if not await self._reached(number):
            raise Gone(f"resource version {number} is not known here ({self.seen} is)")

    async def _reached(self, number: int) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while self.seen < number:
                    self._wake.set()
                    await self._moved.wait()
        return self.seen >= number

    async def _fresh(self) -> None:
        if not self.loaded.is_set():
            raise Unavailable("not loaded yet; try again in a moment")
        try:
            newest = await self._patience.ask(self._newest())
        except AppError:
            newest = self._owed  # Postgres is away: what we know is the best there is
        if not await self._reached(newest):
            raise Unavailable(f"this worker is behind ({self.seen} of {newest}); try again")

    async def _newest(self) -> int:
        async with self._database.read() as tx:
            return await changes.head(tx)

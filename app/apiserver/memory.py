"""Objects kept in this process: the storage of the simulated cluster and of this package's own tests.

One counter numbers all writes. Each kind has a bounded log of its changes, from which watches read at their own pace;
a watch that asks for more than the log still holds, or falls behind it, gets `Gone`, as a real cluster answers 410
after compaction. There is no lock: everything between two awaits is atomic on one event loop.

Stamping uid, timestamps and generation is not done here; the server does it, and so must whoever writes directly.
"""

import asyncio
from collections.abc import AsyncGenerator

from app.apiserver.kinds import Kind
from app.apiserver.shelf import Shelf
from app.apiserver.storage import Change, Listing, User, WatchBatch, WatchEvent
from app.core.manifests import Manifest
from app.errors import Gone

TypeKey = tuple[str, str]


class MemoryStorage:
    """Implements `Storage`. `log_limit` is how many changes a kind remembers at least."""

    def __init__(self, *, log_limit: int = 10_000, progress_s: float = 5.0) -> None:
        self.revision = 0
        self._log_limit = log_limit
        self._progress_s = progress_s
        self._shelves: dict[TypeKey, Shelf] = {}

    def _shelf(self, kind: Kind) -> Shelf:
        return self._shelves.setdefault(kind.key, Shelf())

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        return self._shelf(kind).find(namespace, name)

    async def list(self, kind: Kind, namespace: str | None) -> Listing:
        shelf = self._shelf(kind)
        items = shelf.sorted() if namespace is None else shelf.within(namespace)
        return Listing(items=items, resource_version=self.revision, oldest=shelf.horizon)

    async def write(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        change: Change,
        *,
        user: User,  # noqa: ARG002 (memory keeps no audit)
        dry_run: bool,
    ) -> Manifest | None:
        shelf = self._shelf(kind)
        old = shelf.find(namespace, name)
        new = change(old)
        if new is old:
            return old
        if dry_run:
            return old if new is None else new
        return self._commit(shelf, old, new)

    def _commit(self, shelf: Shelf, old: Manifest | None, new: Manifest | None) -> Manifest:
        self.revision += 1
        stamped = _stamp(old if new is None else new, self.revision)
        if new is None:
            event = WatchEvent("DELETED", stamped, old, self.revision)
        else:
            event = WatchEvent("MODIFIED" if old else "ADDED", stamped, old, self.revision)
        shelf.record(event, self._log_limit)
        return stamped

    async def watch(
        self, kind: Kind, namespace: str | None, since: int
    ) -> AsyncGenerator[WatchBatch, None]:
        shelf = self._shelf(kind)
        if since > self.revision:  # the number is from before a restart
            raise Gone(f"too new resource version: {since} ({self.revision})")
        while True:
            changed = shelf.changed
            told = self.revision
            events = shelf.since(since)
            if namespace is not None:
                events = [event for event in events if _lives_in(event, namespace)]
            yield WatchBatch(told, events)
            since = told
            if shelf.changed is changed:
                await self._wait(changed)

    async def _wait(self, changed: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(self._progress_s):
                await changed.wait()
        except TimeoutError:
            return

    def compact(self) -> None:
        """Forget all changes so far: every watch that is not up to date gets `Gone`."""
        for shelf in self._shelves.values():
            shelf.close(self.revision)


def _lives_in(event: WatchEvent, namespace: str) -> bool:
    return bool(event.object["metadata"].get("namespace") == namespace)


def _stamp(manifest: Manifest | None, revision: int) -> Manifest:
    if manifest is None:
        raise AssertionError("nothing to keep and nothing to remove")
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(revision)}}

"""What do the loops of the simulated cluster know of one kind?

A cache that follows a storage's watch: `objects` is the newest state seen, `owned` finds dependents by their owner's
uid, and handlers are told of every change in order. A writer that must not act on stale knowledge waits with
`reached` for the number of its own last write.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing, suppress

import structlog

from app.apiserver.kinds import Kind
from app.apiserver.storage import Storage
from app.core.manifests import Manifest
from app.errors import Gone

_log = structlog.get_logger(__name__)

Key = tuple[str, str]  # (namespace or "", name)
#: Told (new or None if it is gone, old or None if it is new).
Handler = Callable[[Manifest | None, Manifest | None], None]


def key_of(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return (metadata.get("namespace") or "", metadata["name"])


class Informer:
    def __init__(self, storage: Storage, kind: Kind) -> None:
        self.kind = kind
        self.objects: dict[Key, Manifest] = {}
        self._owned: dict[str, dict[Key, Manifest]] = {}
        self._storage = storage
        self._handlers: list[Handler] = []
        self._revision = -1
        self._moved = asyncio.Event()

    def on_change(self, handler: Handler) -> None:
        """Have `handler` told of every change from now on; before `run` that includes what exists."""
        self._handlers.append(handler)

    def owned(self, uid: str) -> list[Manifest]:
        return list(self._owned.get(uid, {}).values())

    async def reached(self, revision: int) -> None:
        """Wait until everything up to `revision` is known."""
        while self._revision < revision:
            await self._moved.wait()

    async def run(self) -> None:
        """Follow for ever; a log that was compacted underneath is answered by listing again."""
        while True:
            await self._relist()
            with suppress(Gone):
                await self._follow()

    async def _follow(self) -> None:
        async with aclosing(self._storage.watch(self.kind, None, self._revision)) as batches:
            async for batch in batches:
                for event in batch.events:
                    self._apply(None if event.type == "DELETED" else event.object, event.object)
                self._reach(batch.resource_version)

    async def _relist(self) -> None:
        listing = await self._storage.list(self.kind, None)
        found = {key_of(item): item for item in listing.items}
        for key in [key for key in self.objects if key not in found]:
            self._apply(None, self.objects[key])
        for item in found.values():
            if self.objects.get(key_of(item)) is not item:
                self._apply(item, item)
        self._reach(listing.resource_version)

    def _reach(self, revision: int) -> None:
        self._revision = revision
        self._moved.set()
        self._moved = asyncio.Event()

    def _apply(self, new: Manifest | None, about: Manifest) -> None:
        key = key_of(about)
        old = self.objects.pop(key, None)
        if old is not None:
            self._index(old, key, None)
        if new is not None:
            self.objects[key] = new
            self._index(new, key, new)
        for handler in self._handlers:
            try:
                handler(new, old)
            except Exception:  # noqa: BLE001 (see below)
                # The kinds take any field; an object that one loop cannot read must not blind the others.
                _log.exception("sandbox object cannot be read", kind=self.kind.kind, key=key)

    def _index(self, manifest: Manifest, key: Key, entry: Manifest | None) -> None:
        for uid in _owners(manifest):
            if entry is not None:
                self._owned.setdefault(uid, {})[key] = entry
                continue
            family = self._owned.get(uid, {})
            family.pop(key, None)
            if not family:
                self._owned.pop(uid, None)


def _owners(manifest: Manifest) -> Iterable[str]:
    return [one["uid"] for one in manifest["metadata"].get("ownerReferences") or ()]

"""How does one set of events come to be served under two groups?

A storage before the storage: what is asked of ``events.k8s.io`` is done to the core events, translated on the way in
and out. All other kinds pass through untouched.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from app.apiserver.kinds import Kind
from app.apiserver.storage import Change, Listing, Storage, User, WatchBatch, WatchEvent
from app.core.manifests import Manifest
from app.sandbox.kinds.events import EVENT, NEW_EVENT, as_core, as_new


class EventFaces:
    """Implements `Storage`."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        found = await self._inner.get(_stored_as(kind), namespace, name)
        return found if found is None or kind is not NEW_EVENT else as_new(found)

    async def list(self, kind: Kind, namespace: str | None) -> Listing:
        listing = await self._inner.list(_stored_as(kind), namespace)
        if kind is not NEW_EVENT:
            return listing
        return replace(listing, items=[as_new(item) for item in listing.items])

    async def write(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        change: Change,
        *,
        user: User,
        dry_run: bool,
    ) -> Manifest | None:
        written = await self._inner.write(
            _stored_as(kind),
            namespace,
            name,
            _translated(change) if kind is NEW_EVENT else change,
            user=user,
            dry_run=dry_run,
        )
        return written if written is None or kind is not NEW_EVENT else as_new(written)

    def watch(
        self, kind: Kind, namespace: str | None, since: int
    ) -> AsyncGenerator[WatchBatch, None]:
        watch = self._inner.watch(_stored_as(kind), namespace, since)
        return _renamed(watch) if kind is NEW_EVENT else watch


def _stored_as(kind: Kind) -> Kind:
    return EVENT if kind is NEW_EVENT else kind


def _translated(change: Change) -> Change:
    def translated(current: Manifest | None) -> Manifest | None:
        shown = None if current is None else as_new(current)
        new = change(shown)
        if new is shown:
            return current
        return None if new is None else as_core(new)

    return translated


async def _renamed(watch: AsyncGenerator[WatchBatch, None]) -> AsyncGenerator[WatchBatch, None]:
    async with aclosing(watch) as batches:
        async for batch in batches:
            yield replace(batch, events=[_renamed_event(event) for event in batch.events])


def _renamed_event(event: WatchEvent) -> WatchEvent:
    old = None if event.old is None else as_new(event.old)
    return replace(event, object=as_new(event.object), old=old)

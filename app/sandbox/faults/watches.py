"""How do faults reach watches: a storage before the storage that tells events wrongly when asked to."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace

from app.apiserver.kinds import Kind
from app.apiserver.storage import Change, Listing, Storage, User, WatchBatch, WatchEvent
from app.core.manifests import Manifest
from app.errors import Gone
from app.sandbox.faults.http import break_connection
from app.sandbox.faults.plan import Faults


class FaultyStorage:
    """Implements `Storage`; only watches are touched."""

    def __init__(self, inner: Storage, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        return await self._inner.get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str | None) -> Listing:
        return await self._inner.list(kind, namespace)

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
        return await self._inner.write(kind, namespace, name, change, user=user, dry_run=dry_run)

    async def watch(
        self, kind: Kind, namespace: str | None, since: int
    ) -> AsyncGenerator[WatchBatch, None]:
        path, held = _path(kind, namespace), _Held()
        async with aclosing(self._inner.watch(kind, namespace, since)) as batches:
            async for batch in batches:
                told = [wrong for event in batch.events for wrong in self._tell(path, event, held)]
                yield replace(batch, events=told)

    def _tell(self, path: str, event: WatchEvent, held: "_Held") -> Iterator[WatchEvent]:
        fault = self._faults.on_event(path)
        match None if fault is None else fault.kind:
            case "lose":
                return
            case "repeat":
                yield from (event, event)
            case "reorder":
                held.event = event
                return
            case "gone":
                raise Gone(f"too old resource version: {event.resource_version}")
            case "break":
                break_connection()
                return
            case _:
                yield event
        yield from held.release()


class _Held:
    """The event that is told after the next one."""

    def __init__(self) -> None:
        self.event: WatchEvent | None = None

    def release(self) -> Iterator[WatchEvent]:
        if self.event is not None:
            event, self.event = self.event, None
            yield event


def _path(kind: Kind, namespace: str | None) -> str:
    """Return the path of the collection, as faults for requests see it."""
    root = f"/apis/{kind.group}" if kind.group else "/api"
    within = f"/namespaces/{namespace}" if namespace is not None else ""
    return f"{root}/{kind.version}{within}/{kind.plural}"

"""How does a write get from a request into the storage?

`AdmittingStorage` stands before the storage that keeps the objects. A write that no webhook watches stays one atomic
step. For one that is watched the outcome is computed first, shown to the webhooks, and stored only if the object has
not moved meanwhile; if it has, all of it is done again, as the API server's guaranteed update does. Deletions become
what `removal` says: at once, after a grace period, or when finalizers are off.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import datetime

from app.apiserver.kinds import Kind
from app.apiserver.storage import Change, Listing, Storage, User, WatchBatch
from app.core.manifests import Manifest
from app.errors import Conflict
from app.sandbox.admission.builtin import BuiltinAdmission
from app.sandbox.admission.match import Seen
from app.sandbox.admission.review import Write
from app.sandbox.admission.webhooks import Webhooks
from app.sandbox.removal import deleted, released
from app.sandbox.requests import RequestInfo, current_request

_ATTEMPTS = 8


class _Moved(Exception):
    pass


class AdmittingStorage:
    """Implements `Storage`; what it does not say itself comes from `inner`."""

    def __init__(
        self,
        inner: Storage,
        *,
        builtin: BuiltinAdmission,
        webhooks: Webhooks,
        clock: Callable[[], datetime],
    ) -> None:
        self._inner = inner
        self._builtin = builtin
        self._webhooks = webhooks
        self._clock = clock

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        return await self._inner.get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str | None) -> Listing:
        return await self._inner.list(kind, namespace)

    def watch(
        self, kind: Kind, namespace: str | None, since: int
    ) -> AsyncGenerator[WatchBatch, None]:
        return self._inner.watch(kind, namespace, since)

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
        info = current_request()
        return await self.admit(
            kind, (namespace, name), change, user=user, dry_run=dry_run, info=info
        )

    async def admit(
        self,
        kind: Kind,
        place: tuple[str | None, str],
        change: Change,
        *,
        user: User,
        dry_run: bool,
        info: RequestInfo,
    ) -> Manifest | None:
        namespace, name = place
        for _ in range(_ATTEMPTS):
            old = await self._inner.get(kind, namespace, name)
            new = self._outcome(kind, old, change, info)
            if new is old:
                return old
            write = Write(
                kind=kind,
                namespace=namespace,
                name=name,
                operation=info.operation(old),
                old=old,
                new=None if info.operation(old) == "DELETE" else new,
                user=user,
                dry_run=dry_run,
                info=info,
            )
            admitted = await self._admitted(write)
            if write.operation != "DELETE":
                new = admitted
            try:
                return await self._inner.write(
                    kind, namespace, name, _unless_moved(old, new), user=user, dry_run=dry_run
                )
            except _Moved:
                continue
        raise Conflict(
            f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )

    async def _admitted(self, write: Write) -> Manifest | None:
        await self._builtin.check(write)
        write = replace(write, new=await self._builtin.complete(write))
        seen = Seen(kind=write.kind, operation=write.operation, subresource=write.info.subresource)
        if not await self._webhooks.interested(seen):
            return write.new
        return await self._webhooks.run(write)

    def _outcome(
        self, kind: Kind, old: Manifest | None, change: Change, info: RequestInfo
    ) -> Manifest | None:
        new = change(old)
        if old is None:
            return new
        if info.operation(old) == "DELETE":
            return deleted(kind, old, info.delete, self._clock())
        return released(kind, old) if new is None else new


def _unless_moved(base: Manifest | None, new: Manifest | None) -> Change:
    def change(current: Manifest | None) -> Manifest | None:
        if _version(current) != _version(base):
            raise _Moved
        return new

    return change


def _version(manifest: Manifest | None) -> str | None:
    return None if manifest is None else str(manifest["metadata"]["resourceVersion"])

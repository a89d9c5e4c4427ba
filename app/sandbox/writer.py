"""How do the controllers inside the simulated cluster write?

The same verbs as a client has, without the HTTP: names, uids and times are stamped as the API server does, admission
applies, and a write is refused when it would not have been allowed. Status writes bypass `prepare`: what the
controllers say is true by definition here.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.apiserver.kinds import Kind
from app.apiserver.storage import User
from app.core.manifests import Manifest
from app.errors import AlreadyExists, NotFound
from app.sandbox.admission.chain import AdmittingStorage
from app.sandbox.requests import DeleteOptions, RequestInfo
from app.sandbox.times import stamp

_STATUS = RequestInfo(verb="update", subresource="status")
_CREATE = RequestInfo(verb="create")
_UPDATE = RequestInfo(verb="update")
_BACKGROUND = DeleteOptions(propagation="Background")
_ATTEMPTS = 8


@dataclass(frozen=True, kw_only=True)
class Writer:
    storage: AdmittingStorage
    user: User
    clock: Callable[[], datetime]
    new_uid: Callable[[], str]
    new_suffix: Callable[[], str]

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        metadata = dict(manifest["metadata"])
        prefix = metadata.pop("generateName", None)
        for attempt in range(_ATTEMPTS):
            if prefix is not None:
                metadata["name"] = prefix + self.new_suffix()
            try:
                return await self._create(kind, {**manifest, "metadata": metadata}, prefix)
            except AlreadyExists:
                if prefix is None or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    async def _create(self, kind: Kind, manifest: Manifest, prefix: str | None) -> Manifest:
        metadata = manifest["metadata"]
        stamps = {
            "uid": self.new_uid(),
            "creationTimestamp": stamp(self.clock()),
            "generation": 1,
        }
        if prefix is not None:
            stamps["generateName"] = prefix
        new = kind.prepare({**manifest, "metadata": {**metadata, **stamps}}, None)

        def change(current: Manifest | None) -> Manifest | None:
            if current is not None:
                raise AlreadyExists(f'{kind.resource} "{metadata["name"]}" already exists')
            return new

        stored = await self._write(kind, new, change, _CREATE)
        assert stored is not None  # noqa: S101 (a creation always leaves an object)
        return stored

    async def change(
        self,
        kind: Kind,
        manifest: Manifest,
        edit: Callable[[Manifest], Manifest | None],
        info: RequestInfo = _UPDATE,
    ) -> Manifest | None:
        """Edit the newest version of the same object (by uid); None if it is gone by now."""

        def change(current: Manifest | None) -> Manifest | None:
            if current is None or current["metadata"]["uid"] != manifest["metadata"]["uid"]:
                return current
            return edit(current)

        return await self._write(kind, manifest, change, info)

    async def set_status(self, kind: Kind, manifest: Manifest, status: Manifest) -> Manifest | None:
        """Write the whole status; an equal one writes nothing."""

        def edit(current: Manifest) -> Manifest:
            if current.get("status") == status:
                return current
            return {**current, "status": status}

        return await self.change(kind, manifest, edit, _STATUS)

    async def delete(
        self, kind: Kind, manifest: Manifest, options: DeleteOptions = _BACKGROUND
    ) -> Manifest | None:
        """Delete the very object (by uid); None if it is gone by now. Admission decides what is left of it."""
        uid = manifest["metadata"]["uid"]

        def change(current: Manifest | None) -> Manifest | None:
            if current is None or current["metadata"]["uid"] != uid:
                raise NotFound(f'{kind.resource} "{manifest["metadata"]["name"]}" not found')
            return None

        info = RequestInfo(verb="delete", delete=options)
        with suppress(NotFound):
            return await self._write(kind, manifest, change, info)
        return None

    async def drop_finalizer(
        self, kind: Kind, manifest: Manifest, finalizer: str
    ) -> Manifest | None:
        """Take off one finalizer; a deleted object that has no other goes."""

        def edit(current: Manifest) -> Manifest | None:
            metadata: dict[str, Any] = dict(current["metadata"])
            if finalizer not in (metadata.get("finalizers") or ()):
                return current
            kept = [one for one in metadata["finalizers"] if one != finalizer]
            if not kept and "deletionTimestamp" in metadata:
                return None
            metadata["finalizers"] = kept
            if not kept:
                del metadata["finalizers"]
            return {**current, "metadata": metadata}

        return await self.change(kind, manifest, edit)

    async def _write(
        self,
        kind: Kind,
        manifest: Manifest,
        change: Callable[[Manifest | None], Manifest | None],
        info: RequestInfo,
    ) -> Manifest | None:
        metadata = manifest["metadata"]
        return await self.storage.admit(
            kind,
            (metadata.get("namespace"), metadata["name"]),
            change,
            user=self.user,
            dry_run=False,
            info=info,
        )

"""What goes because its owners are gone?

As the garbage collector does: an object whose owners are all gone is deleted; an owner that waits for its dependents
(foreground deletion) has them deleted first; orphaning takes the owner out of its dependents. An owner of a kind that
is not served here is believed to exist.
"""

from collections.abc import Sequence

from app.apiserver.storage import Storage
from app.core.manifests import Manifest
from app.sandbox.batch.facts import deleting
from app.sandbox.informer import Handler, Informer, Key, key_of
from app.sandbox.removal import FOREGROUND, ORPHAN
from app.sandbox.work import WorkQueue
from app.sandbox.writer import Writer

Place = tuple[int, Key]  # which informer, which object


class GarbageCollector:
    """Judges by the storage, not by its caches: an owner may be gone and its dependent disowned already."""

    def __init__(self, writer: Writer, storage: Storage, informers: Sequence[Informer]) -> None:
        self.queue: WorkQueue[Place] = WorkQueue("garbage")
        self._writer = writer
        self._storage = storage
        self._informers = informers
        for number, informer in enumerate(informers):
            informer.on_change(self._watcher(number))

    def _watcher(self, number: int) -> Handler:
        def changed(new: Manifest | None, old: Manifest | None) -> None:
            if new is None:
                if old is not None:
                    self._queue_dependents(old["metadata"]["uid"])
                    self._queue_waiting_owners(old)
                return
            if new["metadata"].get("ownerReferences") or _waits(new):
                self.queue.add((number, key_of(new)))
                self._queue_waiting_owners(new)
            if _waits(new):
                self._queue_dependents(new["metadata"]["uid"])

        return changed

    def _queue_dependents(self, uid: str) -> None:
        for number, informer in enumerate(self._informers):
            for dependent in informer.owned(uid):
                self.queue.add((number, key_of(dependent)))

    def _queue_waiting_owners(self, dependent: Manifest) -> None:
        """A dependent that went or changed may be the last one that its owner waits for."""
        namespace = dependent["metadata"].get("namespace") or ""
        for owner in dependent["metadata"].get("ownerReferences") or ():
            for number, informer in enumerate(self._informers):
                if informer.kind.kind == owner["kind"]:
                    found = informer.objects.get((namespace, owner["name"]))
                    if found is not None and _waits(found):
                        self.queue.add((number, key_of(found)))

    async def sync(self, place: Place) -> None:
        number, key = place
        informer = self._informers[number]
        item = informer.objects.get(key)
        if item is None:
            return
        if _waits(item):
            await self._help_owner(informer, item)
            return
        fresh = await self._storage.get(informer.kind, key[0] or None, key[1])
        if fresh is not None and not deleting(fresh) and await self._is_garbage(fresh):
            await self._writer.delete(informer.kind, fresh)

    async def _is_garbage(self, item: Manifest) -> bool:
        references = item["metadata"].get("ownerReferences") or ()
        fates = [await self._fate(item, reference) for reference in references]
        return bool(fates) and all(fates)

    async def _fate(self, item: Manifest, reference: Manifest) -> bool:
        """Tell whether an owner is gone, or going and waiting for this very dependent."""
        informer = self._informer_of(reference)
        if informer is None:
            return False
        namespace = item["metadata"].get("namespace") if informer.kind.namespaced else None
        owner = await self._storage.get(informer.kind, namespace, reference["name"])
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            return True
        return deleting(owner) and FOREGROUND in (owner["metadata"].get("finalizers") or ())

    def _informer_of(self, reference: Manifest) -> Informer | None:
        group = reference["apiVersion"].rpartition("/")[0]
        return next(
            (
                one
                for one in self._informers
                if one.kind.kind == reference["kind"] and one.kind.group == group
            ),
            None,
        )

    async def _help_owner(self, informer: Informer, owner: Manifest) -> None:
        uid = owner["metadata"]["uid"]
        orphaning = ORPHAN in owner["metadata"]["finalizers"]
        left = False
        for other in self._informers:
            for dependent in other.owned(uid):
                if orphaning:
                    await self._disown(other, dependent, uid)
                else:
                    left = True
        if orphaning:
            await self._writer.drop_finalizer(informer.kind, owner, ORPHAN)
        elif not left:
            await self._writer.drop_finalizer(informer.kind, owner, FOREGROUND)

    async def _disown(self, informer: Informer, dependent: Manifest, uid: str) -> None:
        def edit(current: Manifest) -> Manifest:
            metadata = dict(current["metadata"])
            kept = [one for one in metadata.pop("ownerReferences", ()) if one["uid"] != uid]
            if kept:
                metadata["ownerReferences"] = kept
            return {**current, "metadata": metadata}

        await self._writer.change(informer.kind, dependent, edit)


def _waits(manifest: Manifest) -> bool:
    finalizers = manifest["metadata"].get("finalizers") or ()
    return deleting(manifest) and (ORPHAN in finalizers or FOREGROUND in finalizers)

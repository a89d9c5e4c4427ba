"""What happens to the content of a namespace that is to be deleted?

Every object in it is deleted; when the last one is gone, the namespace lets go of itself. Events go too.
"""

from collections.abc import Callable, Sequence

from app.apiserver.kinds import Kind
from app.apiserver.storage import Storage
from app.core.manifests import Manifest
from app.sandbox.batch.facts import deleting
from app.sandbox.informer import Handler, Informer, Key, key_of
from app.sandbox.work import WorkQueue
from app.sandbox.writer import Writer


class NamespaceController:
    def __init__(
        self,
        writer: Writer,
        storage: Storage,
        namespaces: Informer,
        contents: Sequence[Informer],
        unwatched: Sequence[Kind],
    ) -> None:
        """`unwatched` kinds have no informer; they are listed when a namespace is emptied."""
        self.queue: WorkQueue[Key] = WorkQueue("namespaces")
        self._writer = writer
        self._storage = storage
        self._namespaces = namespaces
        self._kinds = (*(one.kind for one in contents), *unwatched)
        namespaces.on_change(self._look(key_of))
        for informer in contents:
            informer.on_change(self._look(_home))

    def _look(self, where: Callable[[Manifest], Key]) -> Handler:
        def changed(new: Manifest | None, old: Manifest | None) -> None:
            manifest = new or old
            if manifest is None:
                return
            namespace = self._namespaces.objects.get(where(manifest))
            if namespace is not None and deleting(namespace):
                self.queue.add(key_of(namespace))

        return changed

    async def sync(self, key: Key) -> None:
        namespace = self._namespaces.objects.get(key)
        if namespace is None or not deleting(namespace):
            return
        name = namespace["metadata"]["name"]
        left = 0
        for kind in self._kinds:
            items = (await self._storage.list(kind, name)).items
            for item in items:
                await self._writer.delete(kind, item)
            left += len((await self._storage.list(kind, name)).items) if items else 0
        if not left:
            await self._let_go(namespace)

    async def _let_go(self, namespace: Manifest) -> None:
        def edit(current: Manifest) -> Manifest:
            return {**current, "spec": {}}

        kind = self._namespaces.kind
        emptied = await self._writer.change(kind, namespace, edit)
        if emptied is not None:
            await self._writer.delete(kind, emptied)


def _home(manifest: Manifest) -> Key:
    return ("", manifest["metadata"].get("namespace") or "")

"""Keeps the image equal to what the database holds: loaded once, then fed by the change log.

A change of our own commit is applied when it is committed and skipped when the feed brings it again: by then the image
may already be ahead of it. `touched` collects the workloads whose life may have to move on because of what changed:
themselves, or the queue or priority class they depend on, when more than its counters is new. An object the core
cannot read is skipped and told of; it must not stop everybody else's jobs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import structlog

from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.metadata import condition, status_of
from app.core.model import Noun, Workload
from app.core.policy import DEFAULT, Policy
from app.errors import Gone
from app.store import changes
from app.store.changes import Change
from app.store.kinds import KINDS
from app.store.session import Database

log = structlog.get_logger("engine.image")

PORTION = 1000


@dataclass(slots=True)
class Following:
    """`seen` is the change number up to which the image has been fed."""

    database: Database
    policy: Policy = DEFAULT
    image: Image = field(default_factory=Image)
    seen: int = 0
    touched: dict[str, None] = field(default_factory=dict)
    changed: dict[str, Manifest] = field(default_factory=dict)
    flavors: dict[str, Manifest] = field(default_factory=dict)
    """The manifests of all ResourceFlavors by name: what a start needs of them is not in the image."""
    _own: set[int] = field(default_factory=set)
    _grounds: dict[tuple[str, str, str], object] = field(default_factory=dict)

    async def load(self) -> None:
        """Start over from all rows, as of one moment."""
        nouns: list[Noun] = []
        self.flavors, self._grounds = {}, {}
        async with self.database.read() as tx:
            self.seen = await changes.head(tx)
            for kind in KINDS:
                async for page in tx.pages(kind):
                    manifests = [stored.manifest for stored in page]
                    nouns += self._read(manifests)
                    if kind == "ResourceFlavor":
                        self.flavors |= {one["metadata"]["name"]: one for one in manifests}
        self.image = Image.load(nouns, self.policy)
        self._own.clear()
        self.changed.clear()
        self.touched = dict.fromkeys(noun.uid for noun in nouns if isinstance(noun, Workload))

    async def catch_up(self) -> bool:
        """Apply everything committed meanwhile; whether there was anything."""
        before = self.seen
        while True:
            try:
                async with self.database.read() as tx:
                    found = await changes.since(tx, self.seen, PORTION, known=self._own)
            except Gone:
                await self.load()
                return True
            for change in found:
                self._apply(change)
            if len(found) < PORTION:
                return self.seen != before

    def take_own(self, committed: Sequence[Change]) -> None:
        """Apply what this leader itself has just committed."""
        for change in committed:
            self._own.add(change.number)
            self._put(change)

    def knows(self, version: int) -> bool:
        """The image has been fed with the change of this number."""
        return version <= self.seen or version in self._own

    def _apply(self, change: Change) -> None:
        self.seen = change.number
        if change.number in self._own:
            self._own.discard(change.number)
        else:
            self._put(change)

    def _put(self, change: Change) -> None:
        if change.type == "DELETED":
            self.image.remove(change.kind, change.namespace or None, change.name)
            self.changed.pop(change.uid, None)
        for noun in () if change.type == "DELETED" else self._read([change.object]):
            self.image.put(noun)
        if change.kind == "Workload" and change.type != "DELETED":
            self.changed[change.uid] = change.object
        elif change.kind in ("ClusterQueue", "LocalQueue", "WorkloadPriorityClass"):
            if self._has_new_grounds(change):
                self._touch_dependents(change)
        elif change.kind == "ResourceFlavor":
            self._keep_flavor(change)

    def _keep_flavor(self, change: Change) -> None:
        if change.type == "DELETED":
            self.flavors.pop(change.name, None)
        else:
            self.flavors[change.name] = change.object

    def _has_new_grounds(self, change: Change) -> bool:
        """Most changes of a queue are its counters, and nobody's life depends on those."""
        key = (change.kind, change.namespace, change.name)
        before = self._grounds.get(key)
        self._grounds[key] = grounds = None if change.type == "DELETED" else _grounds(change.object)
        return grounds is None or grounds != before

    def _touch_dependents(self, change: Change) -> None:
        """Workloads of a queue that may have been stopped or started, or of a class with a new value."""
        for workload in self.image.workloads.values():
            if not workload.finished and self._depends(workload, change):
                self.touched[workload.uid] = None

    def _depends(self, workload: Workload, change: Change) -> bool:
        match change.kind:
            case "LocalQueue":
                door = (workload.namespace, workload.queue_name)
                return door == (change.namespace, change.name)
            case "ClusterQueue":
                queue = self.image.queue_of(workload)
                held = workload.admission and workload.admission.cluster_queue
                return change.name in (held, queue and queue.name)
            case _:
                return workload.priority_class == change.name

    def _read(self, manifests: Iterable[Manifest]) -> list[Noun]:
        nouns = []
        for manifest in manifests:
            try:
                nouns.append(parse(manifest))
            except (ValueError, KeyError, TypeError) as error:
                metadata = manifest["metadata"]
                log.warning(
                    "object.unreadable",
                    kind=manifest.get("kind"),
                    namespace=metadata.get("namespace"),
                    name=metadata.get("name"),
                    error=str(error),
                )
        return nouns


def _grounds(manifest: Manifest) -> object:
    """All that a workload's life may depend on: everything but the metadata of versions and the counters."""
    content = {name: manifest[name] for name in manifest if name not in ("metadata", "status")}
    active = condition(status_of(manifest), "Active") or {}
    leaving = manifest["metadata"].get("deletionTimestamp")
    return content, leaving, active.get("status"), active.get("reason")

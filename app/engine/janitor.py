"""Lets go of objects that somebody deleted once nothing needs them, and forgets changes nobody can still ask for.

An object of ours that is in use keeps the finalizer `kueue.x-k8s.io/resource-in-use` while it is being deleted: a
flavor while a queue names it, a queue while workloads hold its quota, a workload while its job has not stopped. Kueue's
controllers have the same conditions. They are tested on the image and, for workloads, again on the locked row.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core.image import Image
from app.core.manifests import Manifest
from app.core.metadata import is_deleting
from app.intake.kinds.metadata import IN_USE
from app.store import changes
from app.store.audit import Actor
from app.store.lease import Lease, guard
from app.store.session import Database, WriteTx
from app.store.tracking import StoredWorkload

ACTOR = Actor("system", "janitor")
PAUSE_S = 1.0
KEPT_CHANGES = 20_000
KEPT_FOR = timedelta(minutes=15)
PRUNE_EVERY_S = 60.0

GUARDED = ("ResourceFlavor", "ClusterQueue", "AdmissionCheck", "Topology")


@dataclass(slots=True, kw_only=True)
class Janitor:
    database: Database
    lease: Lease
    clock: Callable[[], datetime]
    image: Callable[[], Image]
    deleting: Callable[[], list[str]]
    """Workloads (uids) that somebody deleted."""
    orphaned: Callable[[StoredWorkload], None]
    """Called with a workload that went while its job is still there, so that the job is looked at again."""

    async def run(self) -> None:
        pruned_at = 0.0
        loop = asyncio.get_running_loop()
        while True:
            await self.sweep()
            if loop.time() - pruned_at > PRUNE_EVERY_S:
                pruned_at = loop.time()
                await self._prune()
            await asyncio.sleep(PAUSE_S)

    async def sweep(self) -> None:
        """Let go of what is deleted and unused."""
        async with self.database.read() as tx:
            found = [one for kind in GUARDED for one in await tx.list(kind) if is_deleting(one)]
        free = [one for one in found if not in_use(one, self.image())]
        leaving = self.deleting()
        if not free and not leaving:
            return

        async def work(tx: WriteTx) -> list[StoredWorkload]:
            await guard(tx, self.lease)
            for one in free:
                await _let_go(tx, one["kind"], one["metadata"]["name"])
            return await self._workloads(tx, leaving)

        gone, _ = await self.database.run(ACTOR, work)
        for row in gone:
            self.orphaned(row)

    async def _workloads(self, tx: WriteTx, uids: list[str]) -> list[StoredWorkload]:
        gone = []
        for row in await tx.get_locked("Workload", uids):
            if isinstance(row, StoredWorkload) and not row.tracking.charged:
                metadata = row.manifest["metadata"]
                if is_deleting(row.manifest):
                    tx.remove("Workload", metadata["namespace"], metadata["name"])
                    gone.append(row)
        return gone

    async def _prune(self) -> None:
        async with self.database.write(ACTOR) as tx:
            await guard(tx, self.lease)
            await changes.prune(tx, keep=KEPT_CHANGES, older_than=self.clock() - KEPT_FOR)


def in_use(manifest: Manifest, image: Image) -> bool:
    name = manifest["metadata"]["name"]
    match manifest["kind"]:
        case "ClusterQueue":
            return bool(image.holdings.get(name))
        case "ResourceFlavor":
            queues = image.cluster_queues.values()
            return any(name in group.flavors for queue in queues for group in queue.groups)
        case "AdmissionCheck":
            queues = image.cluster_queues.values()
            return any(name == rule.name for queue in queues for rule in queue.checks)
        case "Topology":
            return any(flavor.topology_name == name for flavor in image.flavors.values())
    return False


async def _let_go(tx: WriteTx, kind: str, name: str) -> None:
    """Take our finalizer away; the object goes with the last one."""
    manifest = await tx.get(kind, None, name, lock=True)
    if manifest is None or not is_deleting(manifest):
        return
    metadata = manifest["metadata"]
    others = [one for one in metadata.get("finalizers") or () if one != IN_USE]
    if others:
        tx.put({**manifest, "metadata": {**metadata, "finalizers": others}})
    else:
        tx.remove(kind, None, name)

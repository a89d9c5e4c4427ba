"""What do the queues' own statuses say: are they served, who waits, who runs, how much is used?

Computed from the image and written when they differ from what was written last, not more often than `PAUSE_S`: a
status is for people, and every write of one costs a change number. Usage is per flavor and resource, in the order of
the queue's quotas, as Kueue reports it; reservation and usage differ only while admission checks are pending.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.core import resources
from app.core.books import Holding
from app.core.image import Image
from app.core.lifecycle import set_condition
from app.core.manifests import Manifest
from app.core.metadata import status_of
from app.core.model import ClusterQueue, LocalQueue, StopPolicy, Workload
from app.core.resources import FlavorResource
from app.store.audit import Actor
from app.store.lease import Lease, guard
from app.store.session import Database, WriteTx

ACTOR = Actor("system", "status")
PAUSE_S = 0.5

Key = tuple[str, str | None, str]

_WORDS = {
    "Terminating": "Can't admit new workloads; clusterQueue is terminating",
    "Stopped": "Can't admit new workloads: is stopped.",
    "FlavorNotFound": "Can't admit new workloads: references missing ResourceFlavor(s).",
    "AdmissionCheckNotFound": "Can't admit new workloads: references missing AdmissionCheck(s).",
    "AdmissionCheckInactive": "Can't admit new workloads: references inactive AdmissionCheck(s).",
    "TopologyNotFound": "Can't admit new workloads: references missing Topology(s).",
    "CohortCycle": "Can't admit new workloads: its cohort is part of a cycle.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a status says, without its times: what is compared and then written."""

    active: tuple[bool, str, str]
    counts: Mapping[str, int]
    reservation: list[Manifest]
    usage: list[Manifest]

    def onto(self, manifest: Manifest, now: datetime) -> Manifest:
        is_active, reason, message = self.active
        status = {
            **status_of(manifest),
            **self.counts,
            "flavorsReservation": self.reservation,
            "flavorsUsage": self.usage,
        }
        return set_condition(
            {**manifest, "status": status},
            "Active",
            status=is_active,
            reason=reason,
            message=message,
            now=now,
        )


@dataclass(slots=True, kw_only=True)
class StatusLoop:
    database: Database
    lease: Lease
    clock: Callable[[], datetime]
    image: Callable[[], Image]
    moved: asyncio.Event
    _told: dict[Key, Facts] = field(default_factory=dict)

    async def run(self) -> None:
        self._told.clear()
        while True:
            self.moved.clear()
            await self.publish()
            await asyncio.sleep(PAUSE_S)
            await self.moved.wait()

    async def publish(self) -> None:
        """Write what differs from what was written last."""
        facts = dict(_all_facts(self.image()))
        news = {key: found for key, found in facts.items() if self._told.get(key) != found}
        if not news:
            return

        async def work(tx: WriteTx) -> None:
            await guard(tx, self.lease)
            for (kind, namespace, name), found in sorted(
                news.items(), key=lambda item: str(item[0])
            ):
                manifest = await tx.get(kind, namespace, name, lock=True)
                if manifest is not None:
                    tx.put(found.onto(manifest, self.clock()))

        await self.database.run(ACTOR, work)
        self._told = facts


def _all_facts(image: Image) -> Iterable[tuple[Key, Facts]]:
    waiting = Counter(_door(one) for one in image.workloads.values() if _waits(one))
    by_door: dict[tuple[str, str], list[Holding]] = {}
    for holdings in image.holdings.values():
        for holding in holdings.values():
            by_door.setdefault(_door(holding.workload), []).append(holding)
    through: Counter[str] = Counter()
    for (namespace, name), local in sorted(image.local_queues.items()):
        door = (namespace, name)
        through[local.cluster_queue] += waiting[door]
        yield (
            ("LocalQueue", namespace, name),
            _local_queue(image, local, waiting[door], by_door.get(door, [])),
        )
    for name, queue in sorted(image.cluster_queues.items()):
        held = list(image.holdings.get(name, {}).values())
        yield ("ClusterQueue", None, name), _cluster_queue(image, queue, through[name], held)


def _cluster_queue(
    image: Image, queue: ClusterQueue, pending: int, holdings: list[Holding]
) -> Facts:
    reason = image.why_inactive(queue.name)
    words = "Can admit new workloads" if reason is None else _WORDS.get(reason, reason)
    active = (reason is None, reason or "Ready", words)
    return _facts(active, pending, holdings, lambda held: _borrowing(queue, held))


def _local_queue(image: Image, local: LocalQueue, pending: int, holdings: list[Holding]) -> Facts:
    queue = image.cluster_queues.get(local.cluster_queue)
    if queue is None:
        active = (False, "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue")
    elif local.stop_policy is not StopPolicy.NONE:
        active = (False, "Stopped", "LocalQueue is stopped")
    elif image.why_inactive(queue.name) is not None:
        active = (False, "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue")
    else:
        active = (True, "Ready", "Can submit new workloads to localQueue")
    return _facts(active, pending, holdings, lambda held: _flavors(queue, held))


def _facts(
    active: tuple[bool, str, str],
    pending: int,
    holdings: list[Holding],
    usage: Callable[[Sequence[Holding]], list[Manifest]],
) -> Facts:
    admitted = [one for one in holdings if one.workload.admitted]
    return Facts(
        active=active,
        counts={
            "pendingWorkloads": pending,
            "reservingWorkloads": len(holdings),
            "admittedWorkloads": len(admitted),
        },
        reservation=usage(holdings),
        usage=usage(admitted),
    )


def _borrowing(queue: ClusterQueue, holdings: Sequence[Holding]) -> list[Manifest]:
    """Usage with what of it is borrowed; only a ClusterQueue has quota of its own to compare with."""
    used = _used(holdings)
    usage = _flavors(queue, holdings)
    for flavor in usage:
        for resource in flavor["resources"]:
            fr = FlavorResource(flavor["name"], resource["name"])
            quota = queue.quotas.get(fr)
            over = used.get(fr, 0) - quota.nominal if quota and queue.cohort else 0
            resource["borrowed"] = resources.written(fr.resource, max(0, over))
    return usage


def _flavors(queue: ClusterQueue | None, holdings: Sequence[Holding]) -> list[Manifest]:
    if queue is None:
        return []
    used = _used(holdings)
    return [
        {
            "name": flavor,
            "resources": [
                {
                    "name": name,
                    "total": resources.written(name, used.get(FlavorResource(flavor, name), 0)),
                }
                for name in group.resources
            ],
        }
        for group in queue.groups
        for flavor in group.flavors
    ]


def _used(holdings: Iterable[Holding]) -> dict[FlavorResource, int]:
    used: dict[FlavorResource, int] = {}
    for holding in holdings:
        for fr, amount in holding.usage.items():
            used[fr] = used.get(fr, 0) + amount
    return used


def _waits(workload: Workload) -> bool:
    return not workload.finished and workload.active and workload.admission is None


def _door(workload: Workload) -> tuple[str, str]:
    return workload.namespace, workload.queue_name

"""Brings the books of LocalQueues that share by usage up to date, and writes them into their status.

The books are state, not memory: what was consumed and when that was reckoned stand in the status, and the image reads
them from there like everything else. A queue is due when its sampling interval is over or when somebody's entry penalty
is to be taken in. Nothing here runs where no ClusterQueue shares by usage.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from app.core import admission_fairness
from app.core.admission_fairness import Sample
from app.core.image import Image
from app.core.manifests import Manifest
from app.core.metadata import stamp, status_of
from app.core.model import LocalQueue, Workload
from app.core.objects import Key, door
from app.core.ordering import Share
from app.core.quantity import Quantity, format_quantity
from app.store.audit import Actor
from app.store.changes import Change
from app.store.lease import Lease, guard
from app.store.session import Database, WriteTx

ACTOR = Actor("system", "usage")

_NANOS = 10**9
_ENDLESS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    database: Database
    lease: Lease
    clock: Callable[[], datetime]

    async def sample(self, image: Image) -> tuple[Change, ...]:
        """Write what is due; the changes are to be applied to the image."""
        news = dict(_due(image, self.clock()))
        if not news:
            return ()

        async def work(tx: WriteTx) -> None:
            await guard(tx, self.lease)
            for (namespace, name), found in sorted(news.items()):
                manifest = await tx.get("LocalQueue", namespace, name, lock=True)
                if manifest is not None:
                    tx.put(_with(manifest, found))

        _, tx = await self.database.run(ACTOR, work)
        return tx.changes


def _due(image: Image, now: datetime) -> Iterator[tuple[Key, Sample]]:
    rules = image.shares.rules
    if rules is None:
        return
    for key, local in sorted(image.local_queues.items()):
        if image.rank_in(local.cluster_queue) is None:
            continue
        owing = image.shares.owing(key)
        if admission_fairness.is_due(local, owing, rules, now):
            running = _running(image, local)
            known = {one.uid: one for one in (*running, *owing)}
            yield key, admission_fairness.sample(local, known.values(), rules, now)


def _running(image: Image, local: LocalQueue) -> list[Workload]:
    held = image.holdings.get(local.cluster_queue, {}).values()
    place = (local.namespace, local.name)
    return [one.workload for one in held if door(one.workload) == place]


def _with(manifest: Manifest, found: Sample) -> Manifest:
    past = {
        "consumedResources": {
            name: format_quantity(Quantity(amount)) for name, amount in found.consumed.items()
        },
        "lastUpdate": stamp(found.at),
    }
    sharing = {"weightedShare": _rounded(found.share), "admissionFairSharingStatus": past}
    return {**manifest, "status": {**status_of(manifest), "fairSharing": sharing}}


def _rounded(share: Share) -> int:
    """Whole units, up; a queue without weight has an endless share."""
    infinite, amount = share
    return _ENDLESS if infinite else min(-(-amount // (_NANOS * _NANOS)), _ENDLESS)

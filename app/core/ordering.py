"""Who comes first: in a queue, among the heads of a cycle, among the victims of a preemption?

Each order is a key that ends in the uid, so it is total and the same in every process. Lower keys come first.
"""

from collections.abc import Callable
from datetime import datetime

from app.core.model import PodSet, Workload
from app.core.requests import left
from app.core.topology import TopologyRequest

_MOVED_BACK = ("PodsReadyTimeout", "AdmissionCheck")

QueueKey = tuple[int, datetime, str]


def queued_at(workload: Workload) -> datetime:
    """Its place in time: creation, or the eviction that was its own doing (a timeout, a retried check).

    A preempted workload keeps its old place.
    """
    if workload.evicted in _MOVED_BACK and workload.evicted_at is not None:
        return workload.evicted_at
    return workload.created_at


def queue_key(workload: Workload) -> QueueKey:
    """Within a queue: higher priority, then older, then uid."""
    return (-workload.priority, queued_at(workload), workload.uid)


#: What a LocalQueue used of late, for its weight: (1, 0) for a weight of nothing, else (0, amount).
Share = tuple[int, int]
Rank = Callable[[Workload], Share]

_VictimKey = tuple[bool, bool, Share, int, float, str]


def victim_key(workload: Workload, queue: str, rank: Rank | None = None) -> _VictimKey:
    """Among candidates for preemption by a workload of `queue`.

    Already evicted ones first, then other queues before one's own, lower priority, most recently reserved. With a
    `rank`, those of one's own queue whose LocalQueue used more go before priority is looked at.
    """
    own = workload.admission is not None and workload.admission.cluster_queue == queue
    reserved = workload.reserved_at.timestamp() if workload.reserved_at else 0.0
    infinite, amount = rank(workload) if rank is not None and own else (0, 0)
    share = (-infinite, -amount)
    return (workload.evicted is None, own, share, workload.priority, -reserved, workload.uid)


_PodSetKey = tuple[str, str, int, int | None, TopologyRequest | None, str | None]

#: Workloads with equal keys fare alike: where one finds no room, none of them does.
EquivalenceKey = tuple[int, tuple[_PodSetKey, ...]]


def equivalence_key(workload: Workload) -> EquivalenceKey:
    return (workload.priority, tuple(_pod_set_key(workload, one) for one in workload.pod_sets))


def _pod_set_key(workload: Workload, one: PodSet) -> _PodSetKey:
    size = left(workload, one)
    return (one.name, one.shape.digest, size, one.min_count, one.topology, one.group)

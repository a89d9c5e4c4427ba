"""How much does a workload ask for, and how much does it hold?

A pending workload asks for its pods' requests times the pods that are not yet done; one that holds quota holds what
its admission says, scaled down when pods are reclaimed: divided by the admitted count, times what is left. A count
above the admitted one (partial admission) changes nothing.
"""

from dataclasses import dataclass, replace

from app.core.accounting import counted
from app.core.model import ClusterQueue, PodSet, Workload
from app.core.policy import Accounting
from app.core.resources import FlavorResource, Requests, times

_PLAIN = Accounting()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetRequest:
    """All pods of one set together."""

    pod_set: PodSet
    count: int
    requests: Requests


def asked(
    workload: Workload, counts: tuple[int, ...] | None = None, rules: Accounting = _PLAIN
) -> tuple[PodSetRequest, ...]:
    """What it asks for, in the order of its pod sets; `counts` replaces their sizes."""
    sizes = counts or tuple(left(workload, pod_set) for pod_set in workload.pod_sets)
    return tuple(
        PodSetRequest(
            pod_set=pod_set,
            count=size,
            requests={r: times(v, size) for r, v in counted(pod_set.shape.requests, rules).items()},
        )
        for pod_set, size in zip(workload.pod_sets, sizes, strict=True)
    )


def declared(requests: tuple[PodSetRequest, ...], queue: ClusterQueue) -> tuple[PodSetRequest, ...]:
    """Without the resources that the queue has no quota for."""
    return tuple(
        replace(one, requests={r: v for r, v in one.requests.items() if r in queue.covering})
        for one in requests
    )


def left(workload: Workload, pod_set: PodSet) -> int:
    """The pods of a set that are not reclaimed."""
    return max(0, pod_set.count - workload.reclaimable.get(pod_set.name, 0))


def held(workload: Workload) -> dict[FlavorResource, int]:
    """The quota it holds; nothing without an admission."""
    usage: dict[FlavorResource, int] = {}
    if workload.admission is None:
        return usage
    sizes = {pod_set.name: left(workload, pod_set) for pod_set in workload.pod_sets}
    for one in workload.admission.pod_sets:
        size = min(sizes.get(one.name, one.count), one.count)
        for resource, value in one.usage.items():
            flavor = one.flavors.get(resource)
            if flavor is not None:
                fr = FlavorResource(flavor, resource)
                part = value if size == one.count else value // one.count * size
                usage[fr] = usage.get(fr, 0) + part
    return usage

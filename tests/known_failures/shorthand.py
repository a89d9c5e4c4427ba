"""Scenarios as short as they are told: one flavor, gpus, and a queue named after the letter of its workloads."""

from datetime import timedelta
from typing import Any

from app.core.manifests import Manifest
from app.core.metadata import stamp
from app.core.resources import FlavorResource
from tests.builders import NOW, cluster_queue, cohort, flavor, local_queue, workload
from tests.laws.stage import Stage

GPU = FlavorResource("default", "gpu")

FLAVOR = flavor()


def cq(
    name: str,
    nominal: int,
    borrow: int | None = None,
    lend: int | None = None,
    *,
    coh: str | None = None,
    within: str = "Never",
    reclaim: str = "Never",
    strict: bool = False,
    preemption: Manifest | None = None,
    **spec: Any,
) -> list[Manifest]:
    """A ClusterQueue with so many gpus, and the LocalQueue of the same name that leads to it."""
    rules = {"withinClusterQueue": within, "reclaimWithinCohort": reclaim, **(preemption or {})}
    strategy = "StrictFIFO" if strict else "BestEffortFIFO"
    quota = {"default": {"gpu": (nominal, borrow, lend)}}
    queue = cluster_queue(
        name, quota, cohort=coh, preemption=rules, queueingStrategy=strategy, **spec
    )
    return [queue, local_queue(name, name)]


def coh(name: str, gpus: int | None = None, parent: str | None = None) -> Manifest:
    return cohort(name, parent, None if gpus is None else {"default": {"gpu": gpus}})


def w(name: str, gpus: int, *, p: int = 0, t: int = 0, queue: str = "", **more: Any) -> Manifest:
    """A workload of priority `p`, created at second `t`; ``a1`` is sent to queue ``a``."""
    made = workload(name, queue or name.rstrip("0123456789"), gpu=gpus, priority=p, **more)
    made["metadata"]["creationTimestamp"] = stamp(NOW + timedelta(seconds=t))
    return made


def subtree(stage: Stage, name: str) -> int:
    """All the gpus a cohort has and is lent."""
    node = stage.image.tree.cohort(name)
    assert node is not None
    return node.subtree.get(GPU, 0)


def free(stage: Stage, queue: str) -> int:
    node = stage.image.tree.queue(queue)
    assert node is not None
    return node.available(GPU)

"""Why is a workload pending?

Turns what an assignment found out into Kueue's granular reason and message, keeping the facts for programs: per
flavor and resource what was asked, what is free, and which node of the cohort tree stands in the way. A flavor is as
bad as its worst resource; within one resource group the least severe flavor counts, since any of them would do; across
groups and pod sets the most severe, since all are needed. Pod sets that fare better than the whole are not to blame.
"""

from collections.abc import Sequence

from app.core.decisions import Explanation, FlavorFact, PendingReason, PreemptionReason
from app.core.flavors import Assignment
from app.core.model import ClusterQueue

#: From most to least severe: what a person must change, down to what passes by itself.
_SEVERITY = (
    PendingReason.NO_MATCHING_FLAVOR,
    PendingReason.EXCEEDS_MAX_QUOTA,
    PendingReason.WAITING_FOR_QUOTA,
    PendingReason.TOPOLOGY_PLACEMENT_FAILED,
)

_IN_WORDS = {
    PreemptionReason.IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    PreemptionReason.IN_COHORT_RECLAMATION: "reclamation within the cohort",
    PreemptionReason.IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING: (
        "reclamation within the cohort while borrowing"
    ),
}

NAMESPACE_MISMATCH = "Workload namespace doesn't match ClusterQueue selector"
NO_LONGER_FITS = "Workload no longer fits after processing another workload"
OVERLAPPING_TARGETS = "Workload has overlapping preemption targets with another workload"


def explain(assignment: Assignment, queue: ClusterQueue) -> Explanation:
    """The explanation of an assignment that does not simply fit."""
    facts = tuple(fact for one in assignment.pod_sets for fact in one.facts)
    blamed = [
        fact for one in assignment.pod_sets if one.mode <= assignment.mode for fact in one.facts
    ]
    return Explanation(reason=_reason(blamed, queue), message=_message(assignment), facts=facts)


def waiting_for_victims(count: int) -> Explanation:
    return Explanation(
        reason=PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS,
        message=f"Waiting for {count} preempted workload(s) to release their quota",
    )


def waiting_for_others() -> Explanation:
    return Explanation(
        reason=PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS,
        message="Waiting for workloads preempted by others to release their quota",
    )


def waiting_for_pods() -> Explanation:
    return Explanation(
        reason=PendingReason.WAITING_FOR_PODS_READY,
        message="Waiting for all admitted workloads to be in PodsReady condition",
    )


def preempted(preemptor_uid: str, reason: PreemptionReason) -> str:
    """The message of a victim's Evicted and Preempted conditions."""
    return f"Preempted to accommodate a workload (UID: {preemptor_uid}) due to {_IN_WORDS[reason]}"


def simply(reason: PendingReason, message: str) -> Explanation:
    return Explanation(reason=reason, message=message)


def _message(assignment: Assignment) -> str:
    """Kueue's sentence: per pod set, the distinct objections in alphabetical order."""
    return "; ".join(
        f"couldn't assign flavors to pod set {one.name}: "
        + ", ".join(sorted({fact.message for fact in one.facts}))
        for one in assignment.pod_sets
        if one.facts
    )


def _reason(facts: Sequence[FlavorFact], queue: ClusterQueue) -> PendingReason:
    if not queue.groups:
        return PendingReason.NO_MATCHING_FLAVOR
    by_flavor: dict[tuple[str, tuple[str, ...], str], int] = {}
    for fact in facts:
        group = queue.covering.get(fact.resource)
        key = (fact.pod_set, group.resources if group is not None else (), fact.flavor)
        by_flavor[key] = min(by_flavor.get(key, len(_SEVERITY)), _SEVERITY.index(fact.reason))
    by_group: dict[tuple[str, tuple[str, ...]], int] = {}
    for (pod_set, resources, _), severity in by_flavor.items():
        by_group[pod_set, resources] = max(by_group.get((pod_set, resources), 0), severity)
    if not by_group:
        return PendingReason.WAITING_FOR_QUOTA
    return _SEVERITY[min(by_group.values())]

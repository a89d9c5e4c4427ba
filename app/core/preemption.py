"""Whom to preempt so that a workload fits, when queues reclaim by priority (KEP-83 and the hierarchy of KEP-79)?

Candidates come in three sets. From *other queues* that exceed their quota: walking up from the queue, each newly
reached subtree gives candidates; they are *hierarchical* as soon as some node already passed could hold the request
within its own quota, since then the others hold what is ours, and *by priority* otherwise. And from the *same queue*.
Already evicted workloads go first, then the sets in that order.

Victims are removed on trial, one by one, until the workload fits; then those that were not needed are put back. With
``borrowWithinCohort`` the search may be tried with and without borrowing, in an order that depends on what there is.
There is no search for the smallest set: that is Kueue's choice, and cheap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from app.core.books import Holding
from app.core.decisions import PreemptionReason
from app.core.model import PreemptionPolicy, Workload
from app.core.node import Node
from app.core.ordering import victim_key
from app.core.resources import FlavorResource
from app.core.victims import RoomWanted, Target, fill_back, within_quota


class Variant(Enum):
    WITHIN_QUEUE = PreemptionReason.IN_CLUSTER_QUEUE
    HIERARCHICAL = "hierarchical"
    WITHOUT_BORROWING = "without borrowing"
    WHILE_BORROWING = PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING

    @property
    def reason(self) -> PreemptionReason:
        if isinstance(self.value, PreemptionReason):
            return self.value
        return PreemptionReason.IN_COHORT_RECLAMATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    holding: Holding
    variant: Variant
    ancestor: Node | None = None  # the lowest one shared with the preemptor


def find_targets(wanted: RoomWanted) -> list[Target]:
    """The victims to evict; empty when no permitted set of them makes room."""
    candidates = _candidates(wanted)
    if not candidates:
        return []
    for borrowing in _attempts(wanted, candidates):
        with wanted.books.trial():
            targets = _try(wanted, candidates, borrowing=borrowing)
        if targets:
            return targets
    return []


def _try(wanted: RoomWanted, candidates: list[Candidate], *, borrowing: bool) -> list[Target]:
    targets: list[Target] = []
    for candidate in candidates:
        if not _is_still_valid(wanted, candidate, borrowing=borrowing):
            continue
        wanted.remove(candidate.holding)
        targets.append(Target(holding=candidate.holding, reason=candidate.variant.reason))
        if wanted.fits(borrowing=borrowing):
            return fill_back(wanted, targets, borrowing=borrowing)
    return []


def _attempts(wanted: RoomWanted, candidates: list[Candidate]) -> tuple[bool, ...]:
    """Whether to borrow, attempt by attempt."""
    variants = {candidate.variant for candidate in candidates}
    forbidden = _is_borrowing_forbidden(wanted)
    node = wanted.node
    below_nominal = all(node.used(fr) < node.quota(fr).nominal for fr in wanted.needed)
    if variants <= {Variant.WITHIN_QUEUE} or (forbidden and not below_nominal):
        return (True,)
    if forbidden and Variant.HIERARCHICAL not in variants:
        return (False, True)
    return (True, False)


def _is_borrowing_forbidden(wanted: RoomWanted) -> bool:
    return wanted.queue.preemption.borrow_within_cohort is PreemptionPolicy.NEVER


def _is_still_valid(wanted: RoomWanted, candidate: Candidate, *, borrowing: bool) -> bool:
    """A queue, or a cohort below the common ancestor, that fell back to its quota is no source any more."""
    if candidate.variant is Variant.WITHIN_QUEUE:
        return True
    if borrowing and candidate.variant is Variant.WITHOUT_BORROWING:
        return False
    node = wanted.tree.queue(candidate.holding.cluster_queue)
    while node is not None and node is not candidate.ancestor:
        if within_quota(node, wanted.needed):
            return False
        node = node.parent
    return True


def _candidates(wanted: RoomWanted) -> list[Candidate]:
    hierarchical: list[Candidate] = []
    by_priority: list[Candidate] = []
    for candidate in _from_other_queues(wanted):
        is_hierarchical = candidate.variant is Variant.HIERARCHICAL
        (hierarchical if is_hierarchical else by_priority).append(candidate)
    policy = wanted.queue.preemption.within_cluster_queue
    own = [
        Candidate(holding=holding, variant=Variant.WITHIN_QUEUE)
        for holding in wanted.held_in(wanted.queue.name)
        if wanted.may_preempt(holding.workload, policy)
    ]
    ordered = [
        candidate
        for candidates in (hierarchical, by_priority, own)
        for candidate in sorted(
            candidates,
            key=lambda one: victim_key(one.holding.workload, wanted.queue.name, wanted.rank),
        )
    ]
    ordered.sort(key=lambda one: one.holding.workload.evicted is None)
    return ordered


def _from_other_queues(wanted: RoomWanted) -> Iterator[Candidate]:
    if wanted.queue.preemption.reclaim_within_cohort is PreemptionPolicy.NEVER:
        return
    advantage, remaining = _hold(wanted.node, dict(wanted.usage))
    visited = wanted.node
    for root in wanted.node.path():
        for queue in _borrowers(root, visited, wanted.needed):
            for holding in wanted.held_in(queue.name):
                variant = _variant(wanted, holding.workload, advantage=advantage)
                if variant is not None:
                    yield Candidate(holding=holding, variant=variant, ancestor=root)
        fits, remaining = _hold(root, remaining)
        advantage = advantage or fits
        visited = root


def _hold(node: Node, request: dict[FlavorResource, int]) -> tuple[bool, dict[FlavorResource, int]]:
    """Could this node hold the request within its own quota, and what of it must come from above?"""
    fits = all(node.used(fr) + v <= node.subtree.get(fr, 0) for fr, v in request.items())
    return fits, {fr: max(0, v - node.local_available(fr)) for fr, v in request.items()}


def _borrowers(node: Node, visited: Node, needed: frozenset[FlavorResource]) -> Iterator[Node]:
    """The queues below that exceed their quota, not looking into subtrees that do not."""
    for child in node.children:
        if child is visited or within_quota(child, needed):
            continue
        if child.is_queue:
            yield child
        else:
            yield from _borrowers(child, visited, needed)


def _variant(wanted: RoomWanted, victim: Workload, *, advantage: bool) -> Variant | None:
    preemption = wanted.queue.preemption
    if not wanted.may_preempt(victim, preemption.reclaim_within_cohort):
        return None
    if advantage:
        return Variant.HIERARCHICAL
    threshold = preemption.max_priority_threshold
    protected = (
        _is_borrowing_forbidden(wanted)
        or victim.priority >= wanted.workload.priority
        or (threshold is not None and victim.priority > threshold)
    )
    return Variant.WITHOUT_BORROWING if protected else Variant.WHILE_BORROWING

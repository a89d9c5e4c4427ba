"""Whom to preempt so that a workload fits, when queues live by fair shares (KEP-1714)?

Victims are looked for where the share is highest: from the root of the tree down into the child with the largest
dominant resource share, again after every removal. A victim of another queue is taken only if the preemptor's side
stays no worse off than the victim's; both are compared just below their lowest common ancestor, with the preemptor's
usage already added. A workload that stays within its queue's nominal quota reclaims without comparing. What the first
strategy refused, the second may allow, one victim a queue.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.core.books import Holding
from app.core.decisions import PreemptionReason
from app.core.fairness import Share, share
from app.core.model import PreemptionPolicy
from app.core.node import Node, queues_below
from app.core.ordering import victim_key
from app.core.policy import FairStrategy
from app.core.victims import RoomWanted, Target, fill_back


def find_targets(wanted: RoomWanted, strategies: Sequence[FairStrategy]) -> list[Target]:
    """The victims to evict; empty when the strategies allow no set of them that makes room."""
    candidates = _candidates(wanted)
    if not candidates:
        return []
    with wanted.books.trial():
        wanted.tree.charge(wanted.queue.name, wanted.usage)
        targets, refused = _first(wanted, candidates, strategies[0])
        if not _fits(wanted) and len(strategies) > 1:
            targets += _second(wanted, refused)
        wanted.tree.charge(wanted.queue.name, wanted.usage, -1)
        if not targets or not wanted.fits():
            return []
        return fill_back(wanted, targets, borrowing=True)


def _candidates(wanted: RoomWanted) -> list[Holding]:
    preemption = wanted.queue.preemption
    found = [
        holding
        for holding in wanted.held_in(wanted.queue.name)
        if wanted.may_preempt(holding.workload, preemption.within_cluster_queue)
    ]
    if preemption.reclaim_within_cohort is not PreemptionPolicy.NEVER:
        for name in queues_below(wanted.node.root):
            node = wanted.tree.queue(name)
            if node is None or node is wanted.node or not _is_borrowing(node, wanted):
                continue
            found += [
                holding
                for holding in wanted.held_in(name)
                if wanted.may_preempt(holding.workload, preemption.reclaim_within_cohort)
            ]
    return sorted(found, key=lambda one: victim_key(one.workload, wanted.queue.name, wanted.rank))


def _is_borrowing(node: Node, wanted: RoomWanted) -> bool:
    return any(node.used(fr) > node.quota(fr).nominal for fr in wanted.needed)


def _fits(wanted: RoomWanted) -> bool:
    """Does it fit, not counting the usage that was added to compare shares?"""
    with wanted.books.trial():
        wanted.tree.charge(wanted.queue.name, wanted.usage, -1)
        return wanted.fits()


def _first(
    wanted: RoomWanted, candidates: list[Holding], strategy: FairStrategy
) -> tuple[list[Target], list[Holding]]:
    targets: list[Target] = []
    refused: list[Holding] = []
    order = _QueueOrder(wanted, candidates)
    reclaims = all(wanted.node.used(fr) <= wanted.node.quota(fr).nominal for fr in wanted.needed)
    for node in order:
        reason = _first_reason(wanted, node, reclaims=reclaims)
        while (holding := order.pop(node)) is not None:
            if reason is PreemptionReason.IN_COHORT_FAIR_SHARING and not _allows(
                wanted, node, holding, strategy
            ):
                refused.append(holding)
                continue
            wanted.remove(holding)
            targets.append(Target(holding=holding, reason=reason))
            if _fits(wanted):
                return targets, refused
            break  # the shares moved: another queue may be the highest now
    return targets, refused


def _first_reason(wanted: RoomWanted, node: Node, *, reclaims: bool) -> PreemptionReason:
    if node is wanted.node:
        return PreemptionReason.IN_CLUSTER_QUEUE
    if reclaims:
        return PreemptionReason.IN_COHORT_RECLAMATION
    return PreemptionReason.IN_COHORT_FAIR_SHARING


def _second(wanted: RoomWanted, refused: list[Holding]) -> list[Target]:
    targets: list[Target] = []
    order = _QueueOrder(wanted, refused)
    for node in order:
        mine, theirs = _sides(wanted.node, node)
        holding = order.pop(node)
        if holding is not None and share(mine) < share(theirs):
            wanted.remove(holding)
            targets.append(Target(holding=holding, reason=PreemptionReason.IN_COHORT_FAIR_SHARING))
            if _fits(wanted):
                break
        order.drop(node)
    return targets


def _allows(wanted: RoomWanted, node: Node, holding: Holding, strategy: FairStrategy) -> bool:
    mine, theirs = _sides(wanted.node, node)
    if strategy is FairStrategy.LESS_THAN_INITIAL_SHARE:
        return share(mine) < share(theirs)
    preemptor = share(mine)
    with wanted.books.trial():
        wanted.remove(holding)
        return preemptor <= share(theirs)


def _sides(preemptor: Node, target: Node) -> tuple[Node, Node]:
    """The two nodes just below the lowest common ancestor."""
    below: dict[int, Node] = {}
    node = preemptor
    for ancestor in preemptor.path():
        below[id(ancestor)] = node
        node = ancestor
    node = target
    for ancestor in target.path():
        if id(ancestor) in below:
            return below[id(ancestor)], node
        node = ancestor
    return preemptor, target


@dataclass(slots=True)
class _QueueOrder:
    """Queues with candidates, always the one of the highest share next."""

    wanted: RoomWanted
    candidates: list[Holding]
    _waiting: dict[str, list[Holding]] = field(default_factory=dict)
    _on_path: set[int] = field(default_factory=set)
    _pruned: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for holding in self.candidates:
            self._waiting.setdefault(holding.cluster_queue, []).append(holding)
        for held in self._waiting.values():
            held.reverse()
        self._on_path = {id(node) for node in (self.wanted.node, *self.wanted.node.path())}

    def __iter__(self) -> Iterator[Node]:
        own = self.wanted.node
        if own.parent is None:
            while self._waiting.get(own.name):
                yield own
            return
        root = own.root
        while id(root) not in self._pruned:
            node = self._highest(root)
            if node is not None:
                yield node

    def pop(self, node: Node) -> Holding | None:
        held = self._waiting.get(node.name)
        return held.pop() if held else None

    def drop(self, node: Node) -> None:
        self._pruned.add(id(node))

    def _highest(self, cohort: Node) -> Node | None:
        """Descend once; None when a node was pruned instead, which is progress too."""
        best: tuple[Share, Node] | None = None
        for child in cohort.children:
            if id(child) in self._pruned:
                continue
            its = share(child)
            if not self._may_hold(child, its):
                self._pruned.add(id(child))
            elif best is None or self._beats(child, its, *best):
                best = (its, child)
        if best is None:
            self._pruned.add(id(cohort))
            return None
        return best[1] if best[1].is_queue else self._highest(best[1])

    def _may_hold(self, child: Node, its: Share) -> bool:
        if child.is_queue and not self._waiting.get(child.name):
            return False
        return its.borrowing or id(child) in self._on_path

    def _beats(self, child: Node, its: Share, share_now: Share, best: Node) -> bool:
        """Ties: a cohort before a queue, else whose first candidate goes first."""
        if its != share_now:
            return its > share_now
        if child.is_queue != best.is_queue:
            return best.is_queue
        if not child.is_queue:
            return child.name < best.name
        name = self.wanted.queue.name
        first = victim_key(self._waiting[child.name][-1].workload, name)
        return first < victim_key(self._waiting[best.name][-1].workload, name)

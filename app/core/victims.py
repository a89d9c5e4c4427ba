"""Who might be preempted for whom, and does the preemptor fit once they are gone?

What classical preemption and fair sharing have in common: the request for room, the priority rule of a policy, the
removal of victims on trial and the test whether the workload fits. Removal moves what is booked and nothing else;
callers work inside a trial, so everything is taken back. A workload that wants places on nodes fits once the quota does
and the places are found.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from app.core.books import Books, Holding
from app.core.decisions import PreemptionReason
from app.core.model import ClusterQueue, PreemptionPolicy, Workload
from app.core.node import Node
from app.core.ordering import Rank, queued_at
from app.core.placement.gang import BRIEFLY, place
from app.core.placement.misfit import Misfit
from app.core.placement.wanted import Wanted
from app.core.quota import QuotaTree
from app.core.resources import FlavorResource, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A victim and the reason it is one."""

    holding: Holding
    reason: PreemptionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomWanted:
    """Room for `usage` in a queue, and for `pods` on nodes; `needed` are the flavors and resources that lack it.

    `spared` are workloads (by uid) that are not there any more, because others preempt them already; `spent` those who
    were preempted for this one often enough: once they are leaving again, however, they count.
    """

    workload: Workload
    queue: ClusterQueue
    node: Node
    usage: Usage
    needed: frozenset[FlavorResource]
    books: Books
    holdings: Mapping[str, Mapping[str, Holding]]  # queue -> uid -> holding
    pods: tuple[Wanted, ...] = ()
    spared: Collection[str] = field(default_factory=frozenset)
    spent: Collection[str] = field(default_factory=frozenset)
    rank: Rank | None = None  # of this queue's LocalQueues, where they share by usage

    @property
    def tree(self) -> QuotaTree:
        return self.books.tree

    def held_in(self, queue: str) -> Iterable[Holding]:
        """What runs in a queue and uses something that is needed."""
        for holding in self.holdings.get(queue, {}).values():
            if not self._is_out_of_reach(holding) and not self.needed.isdisjoint(holding.usage):
                yield holding

    def _is_out_of_reach(self, holding: Holding) -> bool:
        uid = holding.workload.uid
        return uid in self.spared or (uid in self.spent and holding.workload.evicted is None)

    def remove(self, holding: Holding) -> None:
        self.books.remove(holding)

    def put_back(self, holding: Holding) -> None:
        self.books.put(holding)

    def fits(self, *, borrowing: bool = True) -> bool:
        """Does everything asked for fit now, if need be without borrowing?"""
        for fr, value in self.usage.items():
            if not borrowing and self.node.exceeds_with(fr, value):
                return False
            if value > self.node.available(fr):
                return False
        return not self.pods or not isinstance(place(self.books.sites, self.pods, BRIEFLY), Misfit)

    def may_preempt(self, victim: Workload, policy: PreemptionPolicy) -> bool:
        mine, theirs = self.workload.priority, victim.priority
        match policy:
            case PreemptionPolicy.NEVER:
                return False
            case PreemptionPolicy.ANY:
                return True
            case PreemptionPolicy.LOWER_PRIORITY:
                return theirs < mine
            case PreemptionPolicy.LOWER_OR_NEWER_EQUAL_PRIORITY:
                newer = queued_at(self.workload) < queued_at(victim)
                return theirs < mine or (theirs == mine and newer)


def within_quota(node: Node, frs: Iterable[FlavorResource]) -> bool:
    """Nothing here is borrowed."""
    return not any(node.exceeds_with(fr) for fr in frs)


def fill_back(wanted: RoomWanted, targets: list[Target], *, borrowing: bool) -> list[Target]:
    """Spare the victims that turn out not to be needed, the latest choice first; the last one always is."""
    kept = [targets[-1]]
    for target in reversed(targets[:-1]):
        wanted.put_back(target.holding)
        if not wanted.fits(borrowing=borrowing):
            wanted.remove(target.holding)
            kept.append(target)
    return kept

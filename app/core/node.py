"""How much may a queue take, and whose quota would that be?

Theory of operation. Cohorts form trees, ClusterQueues are their leaves. For each (flavor, resource) a node knows

- its *subtree quota*: its own nominal quota plus what its children lend it;
- what it *guarantees* itself: the part its lending limit keeps from the rest of the tree (nothing, without a limit);
- its *usage*: a child's usage rises to the parent only beyond what the child guarantees itself.

What is *available* at a node is its unused guarantee plus what is available above, capped by its borrowing limit; the
*potential* is the same on an idle tree. Inside the recursion amounts may be negative (a tree in debt after its quota
was lowered); only a queue's own answer is clamped at zero. These are the rules of Kueue's resource_node.go.

A node answers questions; the sums it answers from are kept by ``quota.QuotaTree``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.core.model import Quota
from app.core.quantity import UNLIMITED
from app.core.resources import FlavorResource, Usage, minus, plus

_NO_QUOTA = Quota(nominal=0)


@dataclass(slots=True, eq=False)
class Node:
    """One cohort or one queue. Sums are kept by ``quota.QuotaTree``; everything here is a question."""

    name: str
    is_queue: bool
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    weight_nanos: int = 10**9
    parent_name: str | None = None
    parent: "Node | None" = None
    children: "list[Node]" = field(default_factory=list)
    explicit: bool = False  # a Cohort object of this name exists
    cyclic: bool = False  # some ancestor is its own ancestor: nothing below may be scheduled
    height: int = 0  # longest way down to a leaf
    generation: int = (
        0  # of a queue: moves with who runs in it; of a root: with the quota of its tree
    )
    version: int = 0  # of a root: moves with everything that a nomination in its tree depends on
    subtree: dict[FlavorResource, int] = field(default_factory=dict)
    guaranteed: dict[FlavorResource, int] = field(default_factory=dict)
    usage: dict[FlavorResource, int] = field(default_factory=dict)
    potentials: dict[FlavorResource, int] = field(default_factory=dict)  # memo

    @property
    def root(self) -> "Node":
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def current_generation(self) -> int:
        """Equal at two times: neither the quota of the tree nor who runs in this queue has changed."""
        return max(self.generation, self.root.generation)

    def path(self) -> "Iterator[Node]":
        """Its ancestors, from the parent to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def quota(self, fr: FlavorResource) -> Quota:
        return self.quotas.get(fr, _NO_QUOTA)

    def used(self, fr: FlavorResource) -> int:
        usage = self.usage.get(fr, 0)
        return usage if usage < UNLIMITED else UNLIMITED  # noqa: FURB136 - the hottest line there is

    def local_available(self, fr: FlavorResource) -> int:
        """What is left of the part that this node lends to nobody."""
        guaranteed = self.guaranteed.get(fr)
        return max(0, minus(guaranteed, self.usage.get(fr, 0))) if guaranteed else 0

    def raw_available(self, fr: FlavorResource) -> int:
        """What this node may still take; negative while it or its tree is in debt."""
        if self.parent is None:
            return minus(self.subtree.get(fr, 0), self.usage.get(fr, 0))
        above = self.parent.raw_available(fr)
        cap = self._cap(fr)
        if cap is not None and cap < above:
            above = cap
        return plus(self.local_available(fr), above)

    def available(self, fr: FlavorResource) -> int:
        return max(0, self.raw_available(fr))

    def potential(self, fr: FlavorResource) -> int:
        """The most this node could ever have, borrowing included."""
        known = self.potentials.get(fr)
        if known is None:
            known = self.potentials[fr] = self._potential(fr)
        return known

    def exceeds_with(self, fr: FlavorResource, value: int = 0) -> bool:
        """Would it borrow? A queue borrows beyond its nominal quota, which is all of its subtree's."""
        return plus(self.used(fr), value) > self.subtree.get(fr, 0)

    def borrow_height(self, fr: FlavorResource, value: int) -> tuple[int, bool]:
        """The height of the lowest subtree whose quota holds `value` more, and whether that subtree has a parent.

        Zero: the queue's own quota does. The root's height and False: nothing does. On the way up the request
        shrinks by what each node had guaranteed to itself.
        """
        if self.parent is None or not self.exceeds_with(fr, value):
            return 0, self.parent is not None
        remaining = value - self.local_available(fr)
        for node in self.path():
            if not node.exceeds_with(fr, remaining):
                return node.height, node.parent is not None
            remaining -= node.local_available(fr)
        return self.root.height, False

    def blocker(self, fr: FlavorResource, value: int) -> "Node":
        """The lowest node that keeps `value` from fitting: its borrowing limit, or the root with no room left."""
        node, remaining = self, value
        while node.parent is not None:
            remaining -= node.local_available(fr)
            cap = node._cap(fr)
            if cap is not None and cap < remaining:
                break
            node = node.parent
        return node

    def _cap(self, fr: FlavorResource) -> int | None:
        """What the borrowing limit still lets through from above; None without a limit."""
        quota = self.quotas.get(fr)
        if quota is None or quota.borrowing_limit is None:
            return None
        guaranteed = self.guaranteed.get(fr, 0)
        stored = minus(self.subtree.get(fr, 0), guaranteed)
        taken = max(0, self.usage.get(fr, 0) - guaranteed)
        return plus(minus(stored, taken), quota.borrowing_limit)

    def _potential(self, fr: FlavorResource) -> int:
        subtree = self.subtree.get(fr, 0)
        if self.parent is None:
            return subtree
        most = plus(self.guaranteed.get(fr, 0), self.parent.potential(fr))
        limit = self.quota(fr).borrowing_limit
        return most if limit is None else min(most, plus(subtree, limit))


def queues_below(node: Node) -> Iterator[str]:
    """The names of the queues in a subtree, in no particular order."""
    if node.is_queue:
        yield node.name
    for child in node.children:
        yield from queues_below(child)


def rising(node: Node, usage: Usage) -> Iterator[tuple[Node, Usage]]:
    """What usage added to a node would add to it and to each of its ancestors."""
    at: Node | None = node
    while at is not None:
        yield at, usage
        usage = {fr: beyond(at, fr, value) for fr, value in usage.items()}
        at = at.parent


def beyond(node: Node, fr: FlavorResource, change: int) -> int:
    """The part of a change of usage that the parent notices."""
    guaranteed = node.guaranteed.get(fr)
    if not guaranteed:
        return change
    before = node.usage.get(fr, 0)
    return max(0, before + change - guaranteed) - max(0, before - guaranteed)

"""How much may a queue take, and whose quota would that be?

Theory of operation. Cohorts form trees, ClusterQueues are their leaves. For each (flavor, resource) a node knows

- its *subtree quota*: its own nominal quota plus what its children lend it;
- what it *guarantees* itself: the part its lending limit keeps from the rest of the tree (nothing, without a limit);
- its *usage*: a child's usage rises to the parent only beyond what the child guarantees itself.

What is *available* at a node is its unused guarantee plus what is available above, capped by its borrowing limit; the
*potential* is the same on an idle tree. Inside the recursion amounts may be negative (a tree in debt after its quota
was lowered); only a queue's own answer is clamped at zero. These are the rules of Kueue's resource_node.go.

What always holds: a cohort's usage is the sum over its children of what exceeds their guarantees. Usage is exact and
unbounded, so that taking it back restores every node; saturation happens when numbers are read. Quota edits mark the
tree stale and are summed up at the next question; usage moves along one path only. A trial writes into the same tree
and is rolled back from a journal: nothing is ever copied.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.core.model import ClusterQueue, Cohort, Quota
from app.core.quantity import UNLIMITED
from app.core.resources import FlavorResource, Usage, minus, plus

_NO_QUOTA = Quota(nominal=0)


@dataclass(slots=True, eq=False)
class Node:
    """One cohort or one queue. Sums are kept by ``QuotaTree``; everything here is a question."""

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


#: Whose usage, of what, and how much before; None: not mentioned at all.
_Change = tuple[dict[FlavorResource, int], FlavorResource, int | None]


class Trial:
    """Notes every change of usage from entering to leaving, and takes them back in reverse."""

    __slots__ = ("_journals",)

    def __init__(self, journals: list[list[_Change]]) -> None:
        self._journals = journals

    def __enter__(self) -> None:
        self._journals.append([])

    def __exit__(self, *_: object) -> None:
        for usage, fr, before in reversed(self._journals.pop()):
            if before is None:
                del usage[fr]
            else:
                usage[fr] = before


class QuotaTree:
    """All cohort trees, their quotas and their usage."""

    def __init__(self) -> None:
        self._queues: dict[str, Node] = {}
        self._cohorts: dict[str, Node] = {}
        self._usage: dict[str, dict[FlavorResource, int]] = {}  # by queue, also of absent ones
        self._touched: list[Node] = []  # edited since the sums were made
        self._ticks = 0
        self._journals: list[list[_Change]] = []  # of the trials that are on, the innermost last

    # Edits of quota

    def put_queue(self, queue: ClusterQueue) -> None:
        node = self._queues.get(queue.name)
        if node is None:
            node = self._queues[queue.name] = Node(queue.name, is_queue=True)
        node.usage = self._usage.setdefault(queue.name, {})
        self._edit(node, queue.cohort, queue.quotas, queue.weight_nanos)

    def remove_queue(self, name: str) -> None:
        node = self._queues.pop(name, None)
        if node is not None:
            self._touch(node)

    def put_cohort(self, cohort: Cohort) -> None:
        node = self._cohort(cohort.name)
        node.explicit = True
        self._edit(node, cohort.parent, cohort.quotas, cohort.weight_nanos)

    def remove_cohort(self, name: str) -> None:
        """A cohort that is still referred to lives on without quota and without a parent."""
        node = self._cohorts.get(name)
        if node is not None:
            node.explicit = False
            self._edit(node, None, {}, 10**9)

    # Questions

    def queue(self, name: str) -> Node | None:
        if self._touched:
            self._sum_up()
        return self._queues.get(name)

    def cohort(self, name: str) -> Node | None:
        if self._touched:
            self._sum_up()
        return self._cohorts.get(name)

    def queues(self) -> Mapping[str, Node]:
        if self._touched:
            self._sum_up()
        return self._queues

    # Usage

    def charge(self, queue: str, usage: Usage, sign: int = 1) -> None:
        """Add usage to a queue and to those above whom it concerns; a sign of -1 takes it back."""
        node = self.queue(queue)
        if node is None:
            own = self._usage.setdefault(queue, {})
            for fr, value in usage.items():
                own[fr] = own.get(fr, 0) + sign * value
            return
        for fr, value in usage.items():
            self._shift(node, fr, sign * value)
        if not self._journals:
            self._ticks += 1
            node.root.version = self._ticks

    def note_change(self, queue: str) -> None:
        """Somebody came or went in this queue: interrupted scans over flavors start anew."""
        node = self.queue(queue)
        if node is not None:
            self._ticks += 1
            node.generation = node.root.version = self._ticks

    def trial(self) -> Trial:
        """Everything charged inside is taken back at the end. Trials nest."""
        return Trial(self._journals)

    def _shift(self, start: Node, fr: FlavorResource, change: int) -> None:
        node: Node | None = start
        while node is not None and change:
            usage = node.usage
            before = usage.get(fr)
            if self._journals:
                self._journals[-1].append((usage, fr, before))
            risen = _beyond(node, fr, change)
            usage[fr] = (before or 0) + change
            change = risen
            node = node.parent

    # Structure

    def _cohort(self, name: str) -> Node:
        node = self._cohorts.get(name)
        if node is None:
            node = self._cohorts[name] = Node(name, is_queue=False)
        return node

    def _edit(
        self,
        node: Node,
        parent: str | None,
        quotas: Mapping[FlavorResource, Quota],
        weight_nanos: int,
    ) -> None:
        self._touch(node)
        node.parent_name = parent
        node.quotas = quotas
        node.weight_nanos = weight_nanos

    def _touch(self, node: Node) -> None:
        self._touched += [node, node.root]

    def _sum_up(self) -> None:
        """Link every node to its parent, cut cycles, and sum quotas and usage from the leaves up."""
        touched, self._touched = self._touched, []
        self._link()
        for node in [*self._cohorts.values(), *self._queues.values()]:
            if node.parent is None:
                _total(node)
        self._ticks += 1
        for node in touched:
            node.root.generation = node.root.version = self._ticks

    def _link(self) -> None:
        nodes = [*self._queues.values(), *self._cohorts.values()]
        for name in {node.parent_name for node in nodes if node.parent_name}:
            self._cohort(name)
        wanted = {node.parent_name for node in nodes}
        for name in [n for n, c in self._cohorts.items() if not c.explicit and n not in wanted]:
            del self._cohorts[name]
        nodes = [*self._queues.values(), *self._cohorts.values()]
        for node in nodes:
            node.children = []
            node.parent = self._cohorts[node.parent_name] if node.parent_name else None
        for node in nodes:
            node.cyclic = _runs_in_circle(node)
        for node in nodes:
            if node.cyclic:
                node.parent = None
            if node.parent is not None:
                node.parent.children.append(node)


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
        usage = {fr: _beyond(at, fr, value) for fr, value in usage.items()}
        at = at.parent


def _beyond(node: Node, fr: FlavorResource, change: int) -> int:
    """The part of a change of usage that the parent notices."""
    guaranteed, before = node.guaranteed.get(fr), node.usage.get(fr, 0)
    if not guaranteed:
        return (
            change if before >= 0 <= before + change else max(0, before + change) - max(0, before)
        )
    return max(0, before + change - guaranteed) - max(0, before - guaranteed)


def _runs_in_circle(node: Node) -> bool:
    slow: Node | None = node
    fast = node.parent
    while fast is not None and fast.parent is not None:
        if fast is slow:
            return True
        slow = slow.parent if slow is not None else None
        fast = fast.parent.parent
    return False


def _total(node: Node) -> None:
    """Sum a subtree bottom up."""
    for child in node.children:
        _total(child)
    node.potentials = {}
    node.subtree = {fr: quota.nominal for fr, quota in node.quotas.items()}
    if not node.is_queue:
        node.height = max((child.height + 1 for child in node.children), default=0)
        node.usage = {}
        for child in node.children:
            _lend(child, node)
    node.guaranteed = {
        fr: max(0, minus(node.subtree[fr], quota.lending_limit))
        for fr, quota in node.quotas.items()
        if quota.lending_limit is not None
    }


def _lend(child: Node, parent: Node) -> None:
    for fr, quota in child.subtree.items():
        kept = child.guaranteed.get(fr, 0)
        parent.subtree[fr] = plus(parent.subtree.get(fr, 0), minus(quota, kept))
    for fr, used in child.usage.items():
        over = used - child.guaranteed.get(fr, 0)
        parent.usage[fr] = parent.usage.get(fr, 0) + max(0, over)

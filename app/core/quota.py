"""What do quota edits and usage do to the sums of the cohort trees?

What always holds: a cohort's usage is the sum over its children of what exceeds their guarantees. Usage is exact and
unbounded, so that taking it back restores every node; saturation happens when numbers are read. Quota edits mark the
trees stale and are summed up at the next question; usage moves along one path only. A trial writes into the same tree
and is rolled back from a journal: nothing is ever copied.

A cohort that is referred to without an object exists, without quota and without a parent, as long as somebody refers
to it. A cohort that is its own ancestor cuts off everything below it until the circle is broken.
"""

from collections.abc import Mapping

from app.core.model import ClusterQueue, Cohort, Quota
from app.core.node import Node, beyond
from app.core.resources import FlavorResource, Usage, minus, plus

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
            risen = beyond(node, fr, change)
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

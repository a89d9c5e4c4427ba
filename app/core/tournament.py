"""In which order do heads go when queues live by fair shares?

A tournament up the cohort tree, replayed after every entry because the winner's usage moves the shares. At each
cohort the champions of its child cohorts meet the entries of its queues; what counts is the cohort's child that a
candidate comes from, with the candidate's own usage added: not borrowing what it asks for goes first, then the lower
dominant resource share, then priority, age and uid. Trees are independent and go by the name of their first queue.

Processing an entry moves usage on the way from its queue to the root only, so only the candidates sent up along that
way are ranked anew: a replay costs the height of the tree, not its size.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from app.core.fairness import Share, share
from app.core.model import ClusterQueue, Workload
from app.core.node import Node, rising
from app.core.ordering import QueueKey, queue_key
from app.core.resources import Usage


class Contender(Protocol):
    @property
    def workload(self) -> Workload: ...
    @property
    def queue(self) -> ClusterQueue: ...
    @property
    def node(self) -> Node: ...
    @property
    def usage(self) -> Usage: ...


_Entry = TypeVar("_Entry", bound=Contender)

_Rank = tuple[bool, Share, QueueKey]


def fair_order(entries: Sequence[_Entry]) -> Iterator[_Entry]:
    """Yield the entries, each chosen with the usage that the caller gave to those before it."""
    trees: dict[int, list[_Entry]] = {}
    for entry in sorted(entries, key=lambda one: one.queue.name):
        trees.setdefault(id(entry.node.root), []).append(entry)
    for tree in trees.values():
        yield from _Tournament(tree).play()


class _Tournament(Generic[_Entry]):
    """The tournament of one tree, among the entries of its queues."""

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self._root = entries[0].node.root
        self._waiting = {entry.queue.name: entry for entry in entries}
        self._sent: dict[int, tuple[_Rank, _Entry]] = {}  # by each node to its parent
        self._fields: dict[int, list[tuple[_Rank, int]]] = {}  # of each cohort; the best first

    def play(self) -> Iterator[_Entry]:
        if self._root.is_queue:
            yield from self._waiting.values()
            return
        self._seed(self._root)
        while (champion := self._champion(self._root)) is not None:
            del self._waiting[champion.queue.name]
            yield champion
            self._send(champion.node)
            for node in champion.node.path():
                self._send(node)

    def _seed(self, cohort: Node) -> None:
        self._fields[id(cohort)] = []
        for child in cohort.children:
            if not child.is_queue:
                self._seed(child)
            self._send(child)

    def _send(self, node: Node) -> None:
        """Rank the candidate of a node at its parent, as things stand now."""
        if node.parent is None:
            return
        candidate = self._waiting.get(node.name) if node.is_queue else self._champion(node)
        if candidate is None:
            self._sent.pop(id(node), None)
            return
        rank = _rank(node, candidate)
        self._sent[id(node)] = (rank, candidate)
        heapq.heappush(self._fields[id(node.parent)], (rank, id(node)))

    def _champion(self, cohort: Node) -> _Entry | None:
        field = self._fields[id(cohort)]
        while field:
            rank, sender = field[0]
            sent = self._sent.get(sender)
            if sent is not None and sent[0] is rank:
                return sent[1]
            heapq.heappop(field)
        return None


def _rank(child: Node, entry: Contender) -> _Rank:
    usage = next(risen for node, risen in rising(entry.node, entry.usage) if node is child)
    borrows = any(child.exceeds_with(fr, usage.get(fr, 0)) for fr in entry.usage)
    return (borrows, share(child, usage), queue_key(entry.workload))

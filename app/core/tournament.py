"""In which order do heads go when queues live by fair shares?

A tournament up the cohort tree, replayed after every entry because the winner's usage moves the shares. At each
cohort the champions of its child cohorts meet the entries of its queues; what counts is the cohort's child that a
candidate comes from, with the candidate's own usage added: not borrowing what it asks for goes first, then the lower
dominant resource share, then priority, age and uid. Trees are independent and go by the name of their first queue.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from app.core.fairness import Share, share
from app.core.model import ClusterQueue, Workload
from app.core.ordering import QueueKey, queue_key
from app.core.quota import Node, rising
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


def fair_order(entries: Sequence[_Entry]) -> Iterator[_Entry]:
    """Yield the entries, each chosen with the usage that the caller gave to those before it."""
    waiting = {entry.queue.name: entry for entry in entries}
    while waiting:
        first = waiting[min(waiting)]
        champion = first if first.node.parent is None else _champion(first.node.root, waiting)
        if champion is None:
            return
        del waiting[champion.queue.name]
        yield champion


def _champion(cohort: Node, waiting: dict[str, _Entry]) -> _Entry | None:
    candidates: list[tuple[Node, _Entry]] = []
    for child in cohort.children:
        found = waiting.get(child.name) if child.is_queue else _champion(child, waiting)
        if found is not None:
            candidates.append((child, found))
    if not candidates:
        return None
    return min(candidates, key=lambda pair: _rank(*pair))[1]


def _rank(child: Node, entry: Contender) -> tuple[bool, Share, QueueKey]:
    usage = next(risen for node, risen in rising(entry.node, entry.usage) if node is child)
    borrows = any(child.exceeds_with(fr, usage.get(fr, 0)) for fr in entry.usage)
    return (borrows, share(child, usage), queue_key(entry.workload))

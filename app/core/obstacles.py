"""What stands in a pending workload's way, by whom, and who is ahead of it?

The full answer behind a reason, for people who want to do something about it: for every flavor and resource that it
asked for in vain, the node of the cohort tree that has no room, what that node has and what of it is in use, and the
largest of those who use it; besides, its place in line. Asked for one workload at a time and bounded in length, so a
page may ask for it; cycles do not.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from app.core.books import Holding
from app.core.decisions import Explanation, FlavorFact
from app.core.image import Image
from app.core.model import Workload
from app.core.node import Node, queues_below
from app.core.policy import Policy
from app.core.resources import FlavorResource
from app.core.why import why_pending

MOST_HOLDERS = 5
MOST_AHEAD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A workload that uses what is lacking. `leaving`: it is evicted, and its share comes back once it has stopped."""

    uid: str
    namespace: str
    name: str
    cluster_queue: str
    amount: int
    priority: int
    leaving: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What one flavor has of one resource. `capacity` and `used` are those of the node that has no room.

    For what no node of the tree could ever change (a taint, an uncovered resource) there is no node, and no holder.
    """

    fact: FlavorFact
    capacity: int = 0
    used: int = 0
    holders: tuple[Holder, ...] = ()  # the largest first
    more_holders: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """`position` counts from 1; None for one that stands in no line, because it is parked or held back.

    `ahead` are the uids of those that would be served before it, the first ones only; `in_line` is how many there are
    altogether.
    """

    explanation: Explanation
    cluster_queue: str | None = None
    obstacles: tuple[Obstacle, ...] = ()
    position: int | None = None
    in_line: int = 0
    ahead: tuple[str, ...] = ()


def why(image: Image, policy: Policy, workload: Workload) -> Why | None:
    """None for a workload that holds quota or has finished."""
    explanation = why_pending(image, policy, workload)
    if explanation is None:
        return None
    queue = image.queue_of(workload)
    node = None if queue is None else image.tree.queue(queue.name)
    if queue is None or node is None:
        return Why(explanation=explanation)
    line = [one.uid for one in image.pending(queue.name)]
    place = line.index(workload.uid) if workload.uid in line else None
    return Why(
        explanation=explanation,
        cluster_queue=queue.name,
        obstacles=tuple(_obstacle(image, node, fact) for fact in explanation.facts),
        position=None if place is None else place + 1,
        in_line=len(line),
        ahead=tuple(line[:place][:MOST_AHEAD]),
    )


def _obstacle(image: Image, queue: Node, fact: FlavorFact) -> Obstacle:
    node = next((one for one in (queue, *queue.path()) if one.name == fact.blocked_by), None)
    if node is None:
        return Obstacle(fact=fact)
    fr = FlavorResource(fact.flavor, fact.resource)
    found = list(_holdings(image, node, fr))
    largest = heapq.nsmallest(
        MOST_HOLDERS, found, key=lambda one: (-one.usage[fr], one.workload.uid)
    )
    return Obstacle(
        fact=fact,
        capacity=node.subtree.get(fr, 0),
        used=node.used(fr),
        holders=tuple(_holder(one, fr) for one in largest),
        more_holders=len(found) - len(largest),
    )


def _holdings(image: Image, node: Node, fr: FlavorResource) -> Iterator[Holding]:
    """Those below a node that use some of it."""
    for name in queues_below(node):
        for holding in image.holdings.get(name, {}).values():
            if holding.usage.get(fr, 0) > 0:
                yield holding


def _holder(holding: Holding, fr: FlavorResource) -> Holder:
    workload = holding.workload
    return Holder(
        uid=workload.uid,
        namespace=workload.namespace,
        name=workload.name,
        cluster_queue=holding.cluster_queue,
        amount=holding.usage[fr],
        priority=workload.priority,
        leaving=workload.evicted is not None,
    )

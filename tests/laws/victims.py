"""Law 6 and I16: is every victim legal, and would the preemptor not fit without giving up each of them?

Held against what every head of a queue nominates, decided or not, so that no coincidence of a cycle hides a fault. The
test for room is the flow of quota in `Books`; what is legal is read from the queue's manifest.
"""

from collections.abc import Iterable
from itertools import permutations

from app.core.metadata import Manifest, spec_of
from app.core.model import Workload
from app.core.nomination import Nominator, why_not
from app.core.resources import FlavorResource
from app.core.victims import Target
from tests.conformance.world import World
from tests.laws.books import Books, charged_to, queue_at
from tests.laws.checks import rank

MOST_ORDERED = 4  # victims of one preemptor whose orders are all tried


def victims_are_needed(world: World) -> int:
    """How many victims were looked at."""
    seen = 0
    for head in world.image.heads():
        queue = world.image.queue_of(head)
        node = None if queue is None else world.image.tree.queue(queue.name)
        if queue is None or node is None or why_not(world.image, queue, head) is not None:
            continue
        nomination = Nominator(
            image=world.image, policy=world.policy, queue=queue, node=node, workload=head
        ).nominate()
        usage = {fr: value for fr, value in nomination.assignment.usage.items() if value}
        for target in nomination.targets:
            _is_legal(world, head, target)
        if nomination.targets:
            _are_needed(world, queue.name, usage, nomination.targets)
            _have_an_order(world, queue.name, usage, nomination.targets)
        seen += len(nomination.targets)
    return seen


def _is_legal(world: World, head: Workload, target: Target) -> None:
    victim = _manifest(world, target.holding.workload)
    mine, theirs = _queue_of(world, head), charged_to(victim)
    rules = spec_of(world.manifests["ClusterQueue", mine]).get("preemption") or {}
    if theirs == mine:
        assert target.reason == "InClusterQueue"
        policy = rules.get("withinClusterQueue", "Never")
    else:
        books = Books(world.manifests.values())
        roots = {list(books.path(queue_at(name)))[-1] for name in (mine, theirs)}
        assert len(roots) == 1, f"{theirs} is in another tree than {mine}"
        assert _borrows(books, theirs, books.frs()), f"{theirs} only uses what is its own"
        policy = rules.get("reclaimWithinCohort", "Never")
    assert _satisfies(policy, _manifest(world, head), victim), f"{policy} protects {victim}"
    if target.reason == "InCohortReclaimWhileBorrowing":
        _is_below_threshold(rules.get("borrowWithinCohort") or {}, head, victim)


def _is_below_threshold(rules: Manifest, head: Workload, victim: Manifest) -> None:
    priority = spec_of(victim).get("priority", 0)
    assert rules.get("policy", "Never") != "Never"
    assert priority < head.priority
    assert priority <= rules.get("maxPriorityThreshold", priority)


def _satisfies(policy: str, preemptor: Manifest, victim: Manifest) -> bool:
    (mine, since, _), (theirs, theirs_since, _) = rank(preemptor), rank(victim)
    lower = theirs > mine  # ranks count downwards
    if policy == "LowerOrNewerEqualPriority":
        return lower or (theirs == mine and since < theirs_since)
    return policy == "Any" or (policy == "LowerPriority" and lower)


def _borrows(books: Books, queue: str, frs: Iterable[FlavorResource]) -> bool:
    place = queue_at(queue)
    return any(books.usage(place, fr) > books.nominal(place, fr) for fr in frs)


def _are_needed(
    world: World, queue: str, usage: dict[FlavorResource, int], targets: tuple[Target, ...]
) -> None:
    uids = {one.holding.workload.uid for one in targets}
    assert _room(world, queue, usage, uids), f"no room in {queue} even without {sorted(uids)}"
    for spared in sorted(uids):
        rest = uids - {spared}
        if not _room(world, queue, usage, rest):
            continue
        assert _borrows_with(world, queue, usage, rest), f"{spared} is preempted for nothing"
        assert _stays_within_its_own(world, queue), f"{spared} need not go"


def _have_an_order(
    world: World, queue: str, usage: dict[FlavorResource, int], targets: tuple[Target, ...]
) -> None:
    """In some order, each victim's queue still had borrowed what is needed when its turn came."""
    if len(targets) > MOST_ORDERED:
        return
    manifests = list(world.manifests.values())
    needed = {fr for fr, value in usage.items() if not Books(manifests).fits(queue, {fr: value})}

    def is_orderly(order: tuple[Target, ...]) -> bool:
        gone: set[str] = set()
        for target in order:
            source = target.holding.cluster_queue
            if source != queue and not _borrows(Books(manifests, gone), source, needed):
                return False
            gone.add(target.holding.workload.uid)
        return True

    assert any(is_orderly(order) for order in permutations(targets)), "a victim used its own quota"


def _room(world: World, queue: str, usage: dict[FlavorResource, int], gone: set[str]) -> bool:
    return Books(world.manifests.values(), gone).fits(queue, usage)


def _borrows_with(
    world: World, queue: str, usage: dict[FlavorResource, int], gone: set[str]
) -> bool:
    books, place = Books(world.manifests.values(), gone), queue_at(queue)
    return any(
        books.usage(place, fr) + value > books.nominal(place, fr) for fr, value in usage.items()
    )


def _stays_within_its_own(world: World, queue: str) -> bool:
    """Where a queue might reclaim, Kueue first looks for victims that spare it borrowing.

    So it may take one of its own more than it needs, and there is no telling from the victims: those of other queues
    may have turned out not to be needed.
    """
    rules = spec_of(world.manifests["ClusterQueue", queue]).get("preemption") or {}
    may_reclaim = rules.get("reclaimWithinCohort", "Never") != "Never"
    return may_reclaim and world.policy.fair_sharing is None


def _queue_of(world: World, head: Workload) -> str:
    queue = world.image.queue_of(head)
    assert queue is not None
    return queue.name


def _manifest(world: World, workload: Workload) -> Manifest:
    return world.manifests["Workload", workload.key]

"""Can a pod set be spread evenly over few domains, instead of filling them one by one?

Balanced placement (KEP-2724, off by default), for preferred levels only. Everything must fit below one domain of the
level above the preferred one. There a largest-first fill tells how many domains it takes; the *threshold* is the most
that each of them can be promised. Domains below the threshold are pruned, and the parent with the highest threshold
wins, then the one that needs the fewest domains. Which domains of the winner are used is chosen by a dynamic programme
over (domains used, leaders left, pods left): as few as possible, with the least room to spare. Each gets the threshold,
the first ones what is left over. Whatever does not work out falls back to packing.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from app.core.placement.arrays import Ints
from app.core.placement.counts import LevelCounts, Levels, roll_up
from app.core.placement.demand import Demand
from app.core.placement.greedy import ordered, ordered_for_leader
from app.core.placement.search import Chosen
from app.core.placement.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Balance:
    """The chosen domains, and the pruned counts by which their pods are handed down."""

    chosen: Chosen
    levels: Levels


@dataclass(frozen=True, slots=True)
class _Fill:
    """A largest-first fill: how many domains it took, and the last one of either kind."""

    domains: int
    last: int | None
    last_with_leader: int | None


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    siblings: Ints  # at the preferred level
    levels: Levels
    threshold: int
    domains: int


def balance(tree: Tree, levels: Levels, demand: Demand) -> Balance | None:
    """An even spread, or None where there is none."""
    best: _Candidate | None = None
    for siblings in _families(tree, demand.level):
        found = _candidate(tree, levels, demand, siblings, best.threshold if best else 0)
        if found is None or (best is not None and not _is_better(found, best)):
            continue
        best = found
    if best is None or best.threshold <= 0:
        return None
    return _spread(tree, demand, best)


def _is_better(one: _Candidate, other: _Candidate) -> bool:
    return (-one.threshold, one.domains) < (-other.threshold, other.domains)


def _families(tree: Tree, level: int) -> list[Ints]:
    if level == 0:
        return [np.arange(tree.size(0))]
    starts = tree.starts[level - 1].tolist()
    return [np.arange(low, high) for low, high in pairwise(starts)]


def _candidate(
    tree: Tree, levels: Levels, demand: Demand, siblings: Ints, at_least: int
) -> _Candidate | None:
    """The even spread that one parent allows, if its threshold is no lower than what was found before."""
    level = demand.level
    below, at = siblings, level
    if level < demand.layout.level:
        below, at = tree.children(level, siblings)[0], level + 1
    pool = levels[at].part(below)
    fill = _fill(pool, demand)
    if fill is None:
        return None
    threshold = _threshold(pool, fill, demand)
    reserved = threshold
    if demand.leaders and fill.last is not None:
        reserved = min(threshold, int(pool.slices_beside[fill.last]))
    for value in dict.fromkeys((threshold, reserved)):
        if value < at_least or (value != threshold and value <= 0):
            return None
        pruned = _pruned(tree, levels, demand, siblings, value)
        after = _fill(pruned[level].part(siblings), demand)
        if after is not None:
            return _Candidate(siblings, pruned, value, after.domains)
    return None


def _threshold(pool: LevelCounts, fill: _Fill, demand: Demand) -> int:
    threshold = demand.slices // fill.domains
    if fill.last_with_leader is not None:
        threshold = min(threshold, int(pool.slices_beside[fill.last_with_leader]))
    if fill.last is not None:
        threshold = min(threshold, int(pool.slices[fill.last]))
    return threshold


def _fill(pool: LevelCounts, demand: Demand) -> _Fill | None:
    """Leaders first, then workers, each time into the largest domain."""
    need, leaders, used = demand.slices, demand.leaders, 0
    last = last_with_leader = None
    rest = np.arange(len(pool.pods))
    if leaders and pool.leads is not None and len(rest):
        order = ordered_for_leader(pool, packs=True)
        if not pool.leads[order[0]]:
            return None
        last_with_leader, rest = int(order[0]), np.sort(order[1:])
        leaders, used = 0, 1
        need -= int(pool.slices_beside[last_with_leader])
    if leaders:
        return None
    for position in rest[ordered(pool.part(rest), packs=True)].tolist():
        if need <= 0 or pool.slices[position] <= 0:
            break
        last, used = position, used + 1
        need -= int(pool.slices[position])
    return None if need > 0 or not used else _Fill(used, last, last_with_leader)


def _pruned(tree: Tree, levels: Levels, demand: Demand, siblings: Ints, threshold: int) -> Levels:
    """The counts below these siblings, without what cannot keep the promise of the threshold."""
    pruned = {level: _alone(counts) for level, counts in levels.items() if level >= demand.level}
    if demand.level < tree.bottom:
        children, _ = tree.children(demand.level, siblings)
        _prune(tree, pruned, demand.level + 1, children, threshold)
    layout = demand.layout
    flat = type(layout)(level=layout.level, size=layout.size)
    roll_up(pruned, tree, flat, top=demand.level)
    _prune(tree, pruned, demand.level, siblings, threshold)
    return pruned


def _alone(counts: LevelCounts) -> LevelCounts:
    """A copy that may be written to."""
    return counts.part(np.arange(len(counts.pods)))


def _prune(tree: Tree, levels: Levels, level: int, domains: Ints, threshold: int) -> None:
    counts = levels[level]
    low = domains[counts.slices[domains] < threshold]
    unfit = domains[:0]
    if counts.leads is not None:
        unable = (counts.leads > 0) & (counts.slices_beside < threshold)
        unfit = domains[unable[domains] & (counts.slices[domains] >= threshold)]
    while True:
        counts = levels[level]
        if counts.leads is not None:
            for at in (low, unfit):
                counts.pods_beside[at] = counts.slices_beside[at] = counts.leads[at] = 0
        counts.pods[low] = counts.slices[low] = 0
        if level == tree.bottom:
            return
        low, unfit = tree.children(level, low)[0], tree.children(level, unfit)[0]
        level += 1


def _spread(tree: Tree, demand: Demand, best: _Candidate) -> Balance | None:
    domains, level = best.siblings, demand.level
    if level < demand.layout.level:
        few = _fewest(best.levels[level], domains, demand, _by_entropy(tree, best, level))
        if few is None:
            return None
        domains, level = tree.children(level, np.sort(few))[0], level + 1
    few = _fewest(best.levels[level], domains, demand, domains)
    if few is None:
        return None
    chosen = _even(best.levels[level], level, few, demand, best.threshold)
    return None if chosen is None else Balance(chosen, best.levels)


def _by_entropy(tree: Tree, best: _Candidate, level: int) -> Ints:
    """Roomiest first; among equals the one whose room is spread most evenly over its children."""
    counts, below = best.levels[level], best.levels[level + 1].pods

    def key(domain: int) -> tuple[int, int, float, int]:
        children, _ = tree.children(level, np.array([domain]))
        leads = 0 if counts.leads is None else int(counts.leads[domain])
        return (-leads, -int(counts.slices_beside[domain]), -_entropy(below[children]), domain)

    return np.array(sorted(best.siblings.tolist(), key=key), dtype=np.int64)


def _entropy(pods: Ints) -> float:
    counts: list[int] = pods.tolist()
    total = sum(counts)
    shares = [count / total for count in counts if count > 0]
    return -math.fsum(share * math.log2(share) for share in shares)


_Left = tuple[int, int]  # leaders, pods


def _fewest(counts: LevelCounts, domains: Ints, demand: Demand, order: Ints) -> Ints | None:
    """As few domains as possible, of those sets the one with the least to spare; the first found in `order`."""
    fill = _fill(counts.part(domains), demand)
    if fill is None:
        return None
    start: dict[_Left, tuple[int, ...]] = {(demand.leaders, demand.slices * demand.layout.size): ()}
    sets: list[dict[_Left, tuple[int, ...]]] = [start, *({} for _ in range(fill.domains))]
    for domain in order.tolist():
        for used in range(fill.domains, 0, -1):
            _extend(sets[used - 1], sets[used], counts, domain)
    ends = {
        pods: found for (leaders, pods), found in sets[-1].items() if leaders == 0 and pods <= 0
    }
    return np.array(ends[max(ends)], dtype=np.int64) if ends else None


def _extend(
    before: dict[_Left, tuple[int, ...]],
    after: dict[_Left, tuple[int, ...]],
    counts: LevelCounts,
    domain: int,
) -> None:
    """Add one domain to every set, as the leader's home and as one for workers."""
    leads = counts.leads is not None and bool(counts.leads[domain])
    for leaders, pods in sorted(before):
        if leaders <= 0 and pods <= 0:
            continue
        longer = (*before[leaders, pods], domain)
        if leaders > 0 and leads:
            after.setdefault((leaders - 1, pods - int(counts.pods_beside[domain])), longer)
        if counts.slices[domain] > 0:
            after.setdefault((leaders, pods - int(counts.pods[domain])), longer)


def _even(
    counts: LevelCounts, level: int, domains: Ints, demand: Demand, threshold: int
) -> Chosen | None:
    """The threshold for each, the rest in order."""
    extra = demand.slices - len(domains) * threshold
    if extra < 0:
        return None
    pool = counts.part(np.sort(domains))
    order = ordered_for_leader(pool, packs=True)
    room = pool.slices[order]
    leader: int | None = None
    if demand.leaders:
        room[0], leader = pool.slices_beside[order[0]], int(np.sort(domains)[order[0]])
    room = room - threshold
    before = np.cumsum(room) - room
    more = np.minimum(room, np.maximum(extra - before, 0))
    if int(more.sum()) != extra:
        return None
    return Chosen(level, np.sort(domains)[order], (threshold + more) * demand.layout.size, leader)

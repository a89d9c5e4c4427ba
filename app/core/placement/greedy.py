"""Which domains of a pool take how much, if they are consumed one after the other?

The one rule by which every step of a placement consumes domains. *Packing*, the largest go first and are taken whole
until one could take all that is left; then the tightest of the remaining ones that still can takes it instead. Not
packing, the smallest go first, and there is no such last choice. Equal slices are ordered by fewer pods, then by path.

A leader is placed first, in a domain that can host it and give up what it costs without missing the need; workers in
that domain count beside it. These are Kueue's sortedDomains, prioritizeLeaderDomain and updateCountsToMinimum.
"""

from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import Ints
from app.core.placement.counts import LevelCounts

_SORTED_WHOLE = 2048  # larger pools are narrowed down before they are sorted
_COUNTED = 2**16
_NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Positions in the pool, what each takes, and the position that hosts the leader, if there is one."""

    at: Ints
    amounts: Ints
    leader: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Amounts:
    """What the domains of a pool hold, in the unit that is handed out: slices or pods; alone and beside a leader."""

    alone: Ints
    beside: Ints
    leads: Ints | None


def in_slices(pool: LevelCounts) -> Amounts:
    return Amounts(pool.slices, pool.slices_beside, pool.leads)


def in_pods(pool: LevelCounts, multiple: int) -> Amounts:
    """Pods, in groups of so many."""
    if multiple == 1:
        return Amounts(pool.pods, pool.pods_beside, pool.leads)
    return Amounts(pool.pods // multiple, pool.pods_beside // multiple, pool.leads)


def ordered(pool: LevelCounts, *, packs: bool) -> Ints:
    """All positions in the order of workers."""
    return np.lexsort((pool.pods, -pool.slices if packs else pool.slices))


def ordered_for_leader(pool: LevelCounts, *, packs: bool) -> Ints:
    """Those that can host the leader first; then by what they hold beside it."""
    if pool.leads is None:
        return ordered(pool, packs=packs)
    slices = -pool.slices_beside if packs else pool.slices_beside
    return np.lexsort((pool.pods_beside, slices, -pool.leads))


def contenders(pool: LevelCounts, need: int, *, packs: bool) -> Ints:
    """The positions that `take` would use for so many slices, in the order of workers: the others need no sorting.

    How many domains there are of each size tells at which size the need is met: those on the better side are taken
    whole, of that size the first few, and packing may want the tightest for the rest.
    """
    if len(pool.slices) <= _SORTED_WHOLE:
        return ordered(pool, packs=packs)
    sizes, numbers = _sizes(pool.slices)
    if packs:
        sizes, numbers = sizes[::-1], numbers[::-1]
    sums = np.cumsum(sizes * numbers)
    last = int(np.searchsorted(sums, need))
    if last >= len(sizes):
        return ordered(pool, packs=packs)
    size = int(sizes[last])
    left = need - (int(sums[last - 1]) if last else 0)
    whole = (left - 1) // size  # of that size; then one more, or a tighter one
    better = (pool.slices > size) if packs else (pool.slices < size) & (pool.slices > 0)
    at = [np.flatnonzero(better), _first(pool, size, whole + 1)]
    if packs:
        enough = sizes[(sizes >= left - whole * size) & (numbers > 0)]
        tight = int(enough[-1])
        at += [_first(pool, tight, 1)] if tight < size else []
    chosen = np.sort(np.concatenate(at))
    return chosen[ordered(pool.part(chosen), packs=packs)]


def _sizes(slices: Ints) -> tuple[Ints, Ints]:
    """The sizes there are, ascending, and how many domains of each; small sizes are counted without sorting."""
    if int(slices.max()) < _COUNTED:
        numbers = np.bincount(slices)
        return np.arange(len(numbers), dtype=np.int64), numbers
    return np.unique(slices, return_counts=True)


def _first(pool: LevelCounts, size: int, number: int) -> Ints:
    """The first domains of one size, in the order of workers."""
    at = np.flatnonzero(pool.slices == size)
    if len(at) <= number:
        return at
    return at[np.argsort(pool.pods[at], kind="stable")[:number]]


def take(amounts: Ints, order: Ints, need: int, *, packs: bool) -> Taken | None:
    """Workers only; None when the pool does not hold them."""
    held = amounts[order]
    sums = np.cumsum(held)
    last = int(np.searchsorted(sums, need))
    if last >= len(held):
        return None
    left = need - (int(sums[last - 1]) if last else 0)
    at, taken = order[: last + 1].copy(), held[: last + 1].copy()
    if packs:
        at[last] = order[last + _tightest(held[last:], left)]
    taken[last] = left
    return Taken(at, taken)


def _tightest(held: Ints, need: int) -> int:
    """The first of the smallest that hold so much."""
    return int(np.argmin(np.where(held >= need, held, _NEVER)))


def take_with_leader(amounts: Amounts, order: Ints, need: int, *, packs: bool) -> Taken | None:
    """Workers and their leader; None when the pool does not hold both."""
    if amounts.leads is None:
        return take(amounts.alone, order, need, packs=packs)
    order = leader_first(amounts, order, need)
    led = np.where(amounts.leads > 0, amounts.beside, -1)
    at: list[int] = []
    taken: list[int] = []
    for place, position in enumerate(order.tolist()):
        holds, leads = int(amounts.beside[position]), bool(amounts.leads[position])
        if leads and holds >= need:
            chosen = int(order[place + _tightest(led[order[place:]], need)]) if packs else position
            return Taken(np.array([*at, chosen]), np.array([*taken, need]), chosen)
        at.append(position)
        taken.append(min(holds, need))
        need -= taken[-1]
        if leads:
            rest = take(amounts.alone, order[place + 1 :], need, packs=packs)
            return None if rest is None else _joined(at, taken, rest, leader=position)
    return None


def _joined(at: list[int], taken: list[int], rest: Taken, leader: int) -> Taken:
    amounts = np.concatenate([np.array(taken, dtype=np.int64), rest.amounts])
    return Taken(np.concatenate([np.array(at, dtype=np.int64), rest.at]), amounts, leader)


def leader_first(amounts: Amounts, order: Ints, need: int) -> Ints:
    """Move the first domain to the front that can host the leader and afford what that costs."""
    if amounts.leads is None or len(order) < 2:
        return order
    spare = int(amounts.alone[order].sum()) - need
    costs = amounts.alone[order] - amounts.beside[order]
    able = np.flatnonzero((amounts.leads[order] > 0) & (costs <= spare))
    if not len(able) or able[0] == 0:
        return order
    first = int(able[0])
    return np.concatenate([order[first : first + 1], order[:first], order[first + 1 :]])

"""At which level, and in which of its domains, does a pod set find room?

Phase two, first half (Kueue's findLevelWithFitDomains). One domain that takes everything is best: the one with the
fewest slices to spare, then the fewest pods, then the first path. If no single one does, a *required* level fails; a
*preferred* one looks one level up, and only at the top are several domains taken, as few as can be; an unconstrained
pod set takes several at the level where it began, the smallest first, so that large domains stay whole.
"""

from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import Ints
from app.core.placement.counts import LevelCounts, Levels
from app.core.placement.demand import Demand, Nearness
from app.core.placement.greedy import (
    Taken,
    contenders,
    in_slices,
    leader_first,
    ordered,
    ordered_for_leader,
    take,
)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Domains of a level, the pods for each, and the domain that hosts the leader, if there is one."""

    level: int
    domains: Ints
    pods: Ints
    leader: int | None = None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Not enough room: how many slices fit, at the level where the search ended."""

    level: int
    fitting: int


def search(levels: Levels, demand: Demand) -> Chosen | Shortfall:
    level = demand.level
    while True:
        pool = levels[level]
        single = _single(pool, demand)
        if single is not None:
            leader = single if demand.leaders else None
            return Chosen(level, np.array([single]), np.array([demand.count]), leader)
        if demand.nearness is Nearness.REQUIRED:
            return Shortfall(level, _nearest_miss(pool))
        if demand.nearness is Nearness.UNCONSTRAINED or level == 0:
            return _several(level, pool, demand)
        level -= 1


def _single(pool: LevelCounts, demand: Demand) -> int | None:
    """The tightest domain that takes everything."""
    fits = pool.slices_beside >= demand.slices
    if pool.leads is not None:
        fits &= pool.leads > 0
    at = np.flatnonzero(fits)
    if not len(at):
        return None
    for key in (pool.slices_beside, pool.pods_beside):
        values = key[at]
        at = at[values == values.min()]
    return int(at[0])


def _nearest_miss(pool: LevelCounts) -> int:
    return int(pool.slices[ordered_for_leader(pool, packs=True)[0]])


def _several(level: int, pool: LevelCounts, demand: Demand) -> Chosen | Shortfall:
    need, packs = demand.slices, demand.packs
    if pool.leads is not None:
        return _several_with_leader(level, pool, demand)
    taken = take(pool.slices, contenders(pool, need, packs=packs), need, packs=packs)
    if taken is None:
        return Shortfall(level, int(pool.slices.sum()))
    return Chosen(level, taken.at, taken.amounts * demand.layout.size)


def _several_with_leader(level: int, pool: LevelCounts, demand: Demand) -> Chosen | Shortfall:
    """The leader's domain as it stands, then workers in the others, ordered anew."""
    amounts, packs = in_slices(pool), demand.packs
    order = leader_first(amounts, ordered_for_leader(pool, packs=packs), demand.slices)
    first = order[:1]
    if amounts.leads is None or not amounts.leads[first].any():
        return Shortfall(level, 0)
    others = np.sort(order[1:])
    rest = pool.part(others)
    need = demand.slices - int(amounts.beside[first][0])
    taken = take(rest.slices, ordered(rest, packs=packs), need, packs=packs)
    if taken is None:
        return Shortfall(level, demand.slices - need + int(rest.slices.sum()))
    joined = Taken(
        np.concatenate([first, others[taken.at]]),
        np.concatenate([amounts.beside[first], taken.amounts]),
    )
    return Chosen(level, joined.at, joined.amounts * demand.layout.size, int(first[0]))

"""How are the pods of the chosen domains handed down, until each has a leaf?

Phase two, second half. Above the slice level the children of *all* chosen domains are one pool, consumed by the greedy
rule: as few domains as possible, whatever was promised to each parent. From the slice level down every parent hands
exactly its own pods to its own children, in multiples of an inner slice where one is asked for; there slices count
zero, so the order is that of fewer pods: hosts inside a slice domain are filled from the smallest up.
"""

from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import Ints
from app.core.placement.counts import Levels
from app.core.placement.demand import Demand
from app.core.placement.greedy import (
    Amounts,
    Taken,
    contenders,
    in_pods,
    in_slices,
    ordered,
    take,
    take_with_leader,
)
from app.core.placement.search import Chosen
from app.core.placement.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    tree: Tree
    levels: Levels
    demand: Demand

    def to_leaves(self, chosen: Chosen, *, pooling: bool = True) -> Chosen | None:
        """Leaves in the order of their paths; None where a count promised more than there is."""
        found: Chosen | None = chosen
        while found is not None and found.level < self.tree.bottom:
            if pooling and found.level < self.demand.layout.level:
                found = self._pooled(found)
            else:
                found = self._each_its_own(found)
        if found is None:
            return None
        order = np.argsort(found.domains)
        return Chosen(found.level, found.domains[order], found.pods[order], found.leader)

    def _pooled(self, chosen: Chosen) -> Chosen | None:
        """One step down, all children in one pool."""
        children, _ = self.tree.children(chosen.level, np.sort(chosen.domains))
        pool = self.levels[chosen.level + 1].part(children)
        need, packs = self.demand.slices, self.demand.packs
        if chosen.leader is None:
            taken = take(pool.slices, contenders(pool, need, packs=packs), need, packs=packs)
        else:
            taken = take_with_leader(in_slices(pool), ordered(pool, packs=packs), need, packs=packs)
        return self._below(chosen.level, children, taken, self.demand.layout.size)

    def _each_its_own(self, chosen: Chosen) -> Chosen | None:
        """One step down, every parent by itself."""
        layout, level = self.demand.layout, chosen.level
        multiple = layout.multiple(level + 1) if level >= layout.level else layout.size
        if level < layout.level or chosen.leader is not None:
            return self._one_by_one(chosen, multiple)
        return self._all_at_once(chosen, multiple)

    def _all_at_once(self, chosen: Chosen, multiple: int) -> Chosen | None:
        """Workers of many parents, below the slice level: from the fewest pods up, each parent within its children."""
        children, lengths = self.tree.children(chosen.level, chosen.domains)
        pods = self.levels[chosen.level + 1].pods[children]
        parent = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((pods, parent))
        held = pods[order] // multiple
        before = np.cumsum(held) - held
        first = np.cumsum(lengths) - lengths
        left = (chosen.pods // multiple)[parent] - (before - np.repeat(before[first], lengths))
        taken = np.clip(left, 0, held)
        used = taken > 0
        if int(taken.sum()) * multiple != int(chosen.pods.sum()):
            return None
        return Chosen(chosen.level + 1, children[order][used], taken[used] * multiple)

    def _one_by_one(self, chosen: Chosen, multiple: int) -> Chosen | None:
        parts: list[Chosen] = []
        for domain, pods in zip(chosen.domains.tolist(), chosen.pods.tolist(), strict=True):
            children, _ = self.tree.children(chosen.level, np.array([domain]))
            pool = self.levels[chosen.level + 1].part(children)
            amounts = in_pods(pool, multiple)
            if domain != chosen.leader:
                amounts = Amounts(amounts.alone, amounts.alone, None)
            packs = self.demand.packs
            order = ordered(pool, packs=packs)
            taken = take_with_leader(amounts, order, pods // multiple, packs=packs)
            part = self._below(chosen.level, children, taken, multiple)
            if part is None:
                return None
            parts.append(part)
        return _together(parts)

    def _below(self, level: int, children: Ints, taken: Taken | None, size: int) -> Chosen | None:
        if taken is None:
            return None
        leader = None if taken.leader is None else int(children[taken.leader])
        return Chosen(level + 1, children[taken.at], taken.amounts * size, leader)


def _together(parts: list[Chosen]) -> Chosen:
    leaders = [part.leader for part in parts if part.leader is not None]
    return Chosen(
        parts[0].level,
        np.concatenate([part.domains for part in parts]),
        np.concatenate([part.pods for part in parts]),
        leaders[0] if leaders else None,
    )

"""Why does a pod set find no place, in Kueue's words?

The sentence says how much fits and what keeps nodes out: each node that could not take one pod counts once, under the
first filter that refuses it or the resource it lacks most.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import Bools
from app.core.placement.counts import Counter as PodCounter
from app.core.placement.counts import Levels
from app.core.placement.demand import Demand
from app.core.placement.search import Shortfall
from app.core.placement.tree import Tree


@dataclass(frozen=True, slots=True)
class Misfit:
    """No placement. `pod_set` is the one that found none; the message is empty where nobody asked for it."""

    message: str
    pod_set: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Explainer:
    topology: str
    counter: PodCounter
    levels: Levels
    demand: Demand
    present: Bools  # leaves where a node is

    def sentence(self, short: Shortfall) -> str:
        if self.demand.layers and self.demand.layout.inner:
            return self._layer_by_layer(short.level) + self._exclusions()
        unit = "pod" if self.demand.layout.size == 1 else "slice"
        asked = self.demand.slices
        if short.fitting == 0:
            told = f"doesn't allow to fit any of {asked} {unit}(s)"
        else:
            told = f"allows to fit only {short.fitting} out of {asked} {unit}(s)"
        return f'topology "{self.topology}" {told}{self._exclusions()}'

    def _layer_by_layer(self, level: int) -> str:
        tree = self.counter.tree
        best = int(np.argmax(self.levels[level].slices))
        told = [f'topology "{self.topology}" doesn\'t allow to fit']
        for layer in self.demand.layers:
            at = tree.levels.index(layer.topology)
            fitting = _in_subtree(tree, self.levels, (level, best), at, layer.size)
            asked = self.demand.count // layer.size
            told.append(f"{fitting}/{asked} slice(s) fit on level {layer.topology}")
        return "; ".join(told)

    def _exclusions(self) -> str:
        counter, bottom = self.counter, self.counter.tree.bottom
        shape, screen, stock = counter.shape, counter.screen, counter.stock
        found: Counter[str] = screen.refusals(shape.criteria)
        here = self.present
        allowed = screen.allowed(shape.criteria)
        judged = here if allowed is None else here & allowed
        if self.demand.within is not None:
            inside = np.zeros(len(judged), dtype=np.bool_)
            inside[slice(*self.demand.within)] = True
            found["topologyDomain"] = int((judged & ~inside).sum())
            judged &= inside
        for leaf in np.flatnonzero(judged & (self.levels[bottom].pods == 0)).tolist():
            scarcest = min(
                shape.asked, key=lambda one: (max(0, stock.room(leaf, one[0])) // one[1], one[0])
            )
            found[f'resource "{scarcest[0]}"'] += 1
        if not +found:
            return ""
        told = ", ".join(sorted(f"{reason}: {count}" for reason, count in found.items() if count))
        return f". Total nodes: {int(here.sum())}; excluded: {told}"


def _in_subtree(tree: Tree, levels: Levels, top: tuple[int, int], at: int, size: int) -> int:
    """Whole slices of that size at a level, below one domain."""
    level, domain = top
    domains = np.array([domain])
    while level < at:
        domains, level = tree.children(level, domains)[0], level + 1
    return int((levels[at].pods[domains] // size).sum())

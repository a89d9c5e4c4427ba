"""How many pods of one shape fit into every domain?

Phase one of a placement. For each level four numbers a domain: *pods* and, from the slice level up, whole *slices*; and
the same *beside a leader*, for groups whose leader must find a place, too. A leaf counts by its scarcest resource. A
parent adds up its children (each first rounded down to whole inner slices); beside a leader it loses the smallest
difference that any child able to take the leader would lose. Below the slice level slices count zero. These are the
rules of Kueue's fillInCounts.

Counts are kept by shape: asked again, they catch up with the leaves that changed meanwhile and with the domains above
those, and count everything anew only when much of it changed.
"""

from dataclasses import dataclass, field

import numpy as np

from app.core.placement.arrays import PLENTY, Bools, Ints, zeros
from app.core.placement.demand import Asked, Layout, Shape
from app.core.placement.screen import Screen
from app.core.placement.stock import Stock
from app.core.placement.tree import Tree

_CATCH_UP_PART = 16  # catching up pays while fewer than one leaf in so many changed


@dataclass(slots=True, eq=False)
class LevelCounts:
    """One entry a domain, in the order of the paths. With no leader asked for, `beside` is the same as without one."""

    pods: Ints
    slices: Ints
    pods_beside: Ints
    slices_beside: Ints
    leads: Ints | None = None  # 1 where the leader finds a place; None: there is no leader

    def part(self, chosen: Ints | slice) -> "LevelCounts":
        """The same of some domains only: a view for a slice, a copy for positions."""
        pods, slices = self.pods[chosen], self.slices[chosen]
        if self.leads is None:
            return LevelCounts(pods, slices, pods, slices)
        beside = (self.pods_beside[chosen], self.slices_beside[chosen])
        return LevelCounts(pods, slices, *beside, self.leads[chosen])

    def write(self, at: Ints, new: "LevelCounts") -> None:
        self.pods[at] = new.pods
        self.slices[at] = new.slices
        if self.leads is not None and new.leads is not None:
            self.pods_beside[at] = new.pods_beside
            self.slices_beside[at] = new.slices_beside
            self.leads[at] = new.leads


#: By level of the tree; a search that looks at a subtree only has no levels above it.
Levels = dict[int, LevelCounts]


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts one shape in one tree."""

    shape: Shape
    tree: Tree
    stock: Stock
    screen: Screen

    def leaves(self, at: Ints | None = None, only: tuple[int, int] | None = None) -> LevelCounts:
        """The counts of all leaves, or of some; those outside of `only` hold nothing."""
        shape = self.shape
        open_to_pods = self._open(self.screen.allowed(shape.criteria), at, only)
        pods = self._holding(shape.asked, self._free(at), at, open_to_pods)
        if shape.leader is None:
            slices = self._slices(pods)
            return LevelCounts(pods, slices, pods, slices)
        open_to_leader = self._open(self.screen.allowed(shape.leader_criteria), at, only)
        leads = np.minimum(self._holding(shape.leader, self._free(at), at, open_to_leader), 1)
        left = self._free(at)
        for resource, amount in shape.leader:
            if resource in left:
                left[resource] = left[resource] - amount * leads
        beside = self._holding(shape.asked, left, at, open_to_pods)
        return LevelCounts(pods, self._slices(pods), beside, self._slices(beside), leads)

    def _free(self, at: Ints | None) -> dict[str, Ints]:
        free = self.stock.free
        return dict(free) if at is None else {resource: held[at] for resource, held in free.items()}

    def _holding(
        self, asked: Asked, free: dict[str, Ints], at: Ints | None, is_open: Bools | None
    ) -> Ints:
        held = np.full(self.stock.ground.size if at is None else len(at), PLENTY, dtype=np.int64)
        for resource, amount in asked:
            if resource not in free:
                return np.zeros_like(held)
            np.minimum(held, free[resource] // amount, out=held)
        np.maximum(held, 0, out=held)
        return held if is_open is None else np.where(is_open, held, 0)

    def _open(
        self, mask: Bools | None, at: Ints | None, only: tuple[int, int] | None
    ) -> Bools | None:
        if only is not None:
            inside = np.zeros(self.stock.ground.size, dtype=np.bool_)
            inside[slice(*only)] = True
            mask = inside if mask is None else mask & inside
        return mask if mask is None or at is None else mask[at]

    def _slices(self, pods: Ints) -> Ints:
        layout = self.shape.layout
        return _in_slices(pods, layout) if layout.level == self.tree.bottom else zeros(len(pods))


def roll_up(levels: Levels, tree: Tree, layout: Layout, top: int = 0) -> None:
    """Count every level above the leaves, up to `top`."""
    for level in range(tree.bottom - 1, top - 1, -1):
        starts = tree.starts[level][:-1]
        levels[level] = _parents(levels[level + 1], starts, layout, level)


def _parents(children: LevelCounts, starts: Ints, layout: Layout, level: int) -> LevelCounts:
    """What parents count whose children begin at `starts`, in a row."""
    if not len(starts):
        return children.part(slice(0))
    multiple = layout.multiple(level + 1)
    pods_below = _whole(children.pods, multiple)
    pods = np.add.reduceat(pods_below, starts)
    slices = np.add.reduceat(children.slices, starts)
    if level == layout.level:
        slices = _in_slices(pods, layout)
    if children.leads is None:
        return LevelCounts(pods, slices, pods, slices)
    leads = np.maximum.reduceat(children.leads, starts)
    pods_beside = pods - _least_loss(
        pods_below - _whole(children.pods_beside, multiple), children.leads, starts
    )
    pods_beside = np.where(leads > 0, pods_beside, 0)
    slices_beside = slices - _least_loss(
        children.slices - children.slices_beside, children.leads, starts
    )
    slices_beside = np.where(leads > 0, slices_beside, 0)
    if level == layout.level:
        slices_beside = _in_slices(pods_beside, layout)
    return LevelCounts(pods, slices, pods_beside, slices_beside, leads)


def _least_loss(losses: Ints, leads: Ints, starts: Ints) -> Ints:
    return np.minimum.reduceat(np.where(leads > 0, losses, PLENTY), starts)


def _whole(pods: Ints, multiple: int) -> Ints:
    return pods if multiple == 1 else pods // multiple * multiple


def _in_slices(pods: Ints, layout: Layout) -> Ints:
    return pods if layout.size == 1 else pods // layout.size


@dataclass(slots=True, eq=False)
class Tally:
    """The counts of one shape, kept current."""

    counter: Counter
    levels: Levels = field(default_factory=dict)
    _mark: int = -1

    def current(self) -> Levels:
        stock = self.counter.stock
        touched = stock.since(self._mark) if self._mark >= 0 else None
        if touched is None or len(touched) * _CATCH_UP_PART > stock.ground.size + 64:
            self.levels = fresh(self.counter)
        elif touched:
            self._catch_up(np.unique(np.array(touched, dtype=np.int64)))
        self._mark = stock.mark()
        return self.levels

    def _catch_up(self, leaves: Ints) -> None:
        tree, layout = self.counter.tree, self.counter.shape.layout
        at, level = leaves, tree.bottom
        self.levels[level].write(at, self.counter.leaves(at))
        while level > 0:
            at = np.unique(tree.parents[level - 1][at])
            level -= 1
            children, lengths = tree.children(level, at)
            starts = np.cumsum(lengths) - lengths
            below = self.levels[level + 1].part(children)
            self.levels[level].write(at, _parents(below, starts, layout, level))


def fresh(counter: Counter, only: tuple[int, int] | None = None) -> Levels:
    """Counted from nothing."""
    levels = {counter.tree.bottom: counter.leaves(only=only)}
    roll_up(levels, counter.tree, counter.shape.layout)
    return levels

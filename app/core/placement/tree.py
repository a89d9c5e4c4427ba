"""How are the nodes of a flavor nested?

Leaves are sorted by their label paths, so every domain of every level owns a contiguous range of the level below, and
the position of a domain in its level *is* its rank in every tie-break. The tree is fixed; a node that goes keeps its
place, empty, until a node with a new path makes a new tree necessary.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import Ints, spans
from app.core.topology import HOSTNAME

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """`starts[l][d]` to `starts[l][d + 1]` are the children, at level l + 1, of domain d of level l."""

    levels: tuple[str, ...]
    paths: tuple[Path, ...]  # of the leaves, sorted
    starts: tuple[Ints, ...]
    parents: tuple[Ints, ...]  # parents[l]: of each domain of level l + 1, its domain of level l
    leaf_of: dict[Path, int]  # by the values that an assignment names it with

    @property
    def bottom(self) -> int:
        return len(self.levels) - 1

    @property
    def names_hosts(self) -> bool:
        """Is each leaf a node, named by its host name alone?"""
        return self.levels[-1] == HOSTNAME

    @property
    def written_levels(self) -> tuple[str, ...]:
        return self.levels[-1:] if self.names_hosts else self.levels

    def written(self, leaf: int) -> Path:
        """The values by which an assignment names a leaf."""
        path = self.paths[leaf]
        return path[-1:] if self.names_hosts else path

    def size(self, level: int) -> int:
        return len(self.paths) if level == self.bottom else len(self.starts[level]) - 1

    def children(self, level: int, domains: Ints) -> tuple[Ints, Ints]:
        """The children of some domains in a row, and how many each has."""
        starts = self.starts[level]
        first = starts[domains]
        lengths = starts[domains + 1] - first
        return spans(first, lengths), lengths

    def leaves(self, level: int, domain: int) -> tuple[int, int]:
        """The range of leaves below a domain."""
        low, high = domain, domain + 1
        for starts in self.starts[level:]:
            low, high = int(starts[low]), int(starts[high])
        return low, high

    def ancestor(self, leaf: int, level: int) -> int:
        domain = leaf
        for parents in reversed(self.parents[level:]):
            domain = int(parents[domain])
        return domain


def grow(levels: tuple[str, ...], paths: Iterable[Path]) -> Tree:
    """The tree of all these leaves; equal paths are one leaf."""
    ordered = tuple(sorted(set(paths)))
    above = _ranks(ordered, 1)
    starts, parents = [], []
    for depth in range(2, len(levels) + 1):
        ranks = _ranks(ordered, depth)
        _, first = np.unique(ranks, return_index=True)
        parent = above[first] if len(ordered) else above
        parents.append(parent)
        sizes = np.bincount(parent) if len(parent) else parent
        starts.append(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        above = ranks
    keep = slice(-1, None) if levels[-1] == HOSTNAME else slice(None)
    return Tree(
        levels=levels,
        paths=ordered,
        starts=tuple(starts),
        parents=tuple(parents),
        leaf_of={path[keep]: leaf for leaf, path in enumerate(ordered)},
    )


def _ranks(paths: tuple[Path, ...], depth: int) -> Ints:
    """For each leaf, the place of its ancestor of that depth among its equals."""
    ranks = np.zeros(len(paths), dtype=np.int64)
    if depth == len(paths[0]) if paths else False:
        return np.arange(len(paths), dtype=np.int64)
    rank, last = -1, None
    for leaf, path in enumerate(paths):
        if path[:depth] != last:
            rank, last = rank + 1, path[:depth]
        ranks[leaf] = rank
    return ranks

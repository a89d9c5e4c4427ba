"""How are the nodes of a flavor nested?

Leaves are sorted by their label paths, so every domain of every level owns a contiguous range of the level below, and
the position of a domain in its level *is* its rank in every tie-break. The tree is fixed; a node that goes keeps its
place, empty, until a node with a new path makes a new tree necessary.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

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
        return self.named(self.paths[leaf])

    def named(self, path: Path) -> Path:
        """The values by which an assignment names the domain of a full path."""
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
    """The tree of all these leaves; equal paths are one leaf, and so are paths to one host: the first in order."""
    ordered = tuple(sorted(set(paths)))
    if levels[-1] == HOSTNAME:
        hosts = {path[-1]: path for path in reversed(ordered)}
        ordered = tuple(sorted(hosts.values()))
    ranks = [_ranks(ordered, depth) for depth in range(1, len(levels) + 1)]
    starts, parents = [], []
    for above, below in pairwise(ranks):
        _, first = np.unique(below, return_index=True)
        parents.append(above[first])
        starts.append(np.concatenate([[0], np.cumsum(np.bincount(above[first]))]).astype(np.int64))
    tree = Tree(levels, ordered, tuple(starts), tuple(parents), {})
    tree.leaf_of.update((tree.named(path), leaf) for leaf, path in enumerate(ordered))
    return tree


def _ranks(paths: tuple[Path, ...], depth: int) -> Ints:
    """For each leaf, the place of its ancestor of that depth among its equals."""
    new = [a[:depth] != b[:depth] for a, b in pairwise(paths)]
    return np.cumsum([0, *new], dtype=np.int64)[: len(paths)]

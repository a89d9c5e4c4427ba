"""Which leaves may a pod use at all?

Where leaves are nodes, a pod needs a node whose taints it tolerates, whose labels its node selector matches and its
required affinity accepts. The answer is a mask, kept for every class of pods; a node that changes changes its own place
in it. Labels and taints are encoded column by column, the first time a key is asked for. Where a leaf is a group of
nodes there is no one node to judge, and nothing is screened: the rule of Kueue's matchNode.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import eq
from typing import Generic, TypeVar

import numpy as np

from app.core.model import Node
from app.core.placement.arrays import Bools, Ints
from app.core.selectors import NodeAffinity, Requirement, Taint, Toleration

_Value = TypeVar("_Value")

_MASKS_KEPT = 256

#: The key under which a node selector term asks for a node's own name (``matchFields``).
NODE_NAME = "metadata.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """What a class of pods tolerates and wants; tolerations of the flavor included."""

    tolerations: tuple[Toleration, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeAffinity | None = None


@dataclass(slots=True, eq=False)
class Column(Generic[_Value]):
    """One value a leaf, as codes: what holds for a value is worked out once, however many leaves have it."""

    codes: Ints
    values: list[_Value]
    _code_of: dict[_Value, int]

    @classmethod
    def of(cls, values: Sequence[_Value]) -> "Column[_Value]":
        code_of = {value: code for code, value in enumerate(dict.fromkeys(values))}
        codes = np.array([code_of[value] for value in values], dtype=np.int64)
        return cls(codes, list(code_of), code_of)

    def put(self, leaf: int, value: _Value) -> None:
        code = self._code_of.setdefault(value, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        self.codes[leaf] = code

    def where(self, holds: Callable[[_Value], bool]) -> Bools:
        return np.array([holds(value) for value in self.values], dtype=np.bool_)[self.codes]


@dataclass(slots=True, eq=False)
class Screen:
    """`nodes` are those of the leaves, None where one is away; empty where leaves are no nodes."""

    nodes: list[Node | None]
    _labels: dict[str, Column[str | None]] = field(default_factory=dict)
    _taints: Column[tuple[Taint, ...]] | None = None
    _masks: dict[Criteria, Bools] = field(default_factory=dict)

    def change(self, leaf: int, node: Node | None) -> None:
        """A node came, went or looks different now."""
        old, self.nodes[leaf] = self.nodes[leaf], node
        if old is not None and node is not None and _look_alike(old, node):
            return
        for key, column in self._labels.items():
            column.put(leaf, _label(node, key))
        if self._taints is not None:
            self._taints.put(leaf, _taints(node))
        for criteria, mask in self._masks.items():
            mask[leaf] = node is not None and _admits(node, criteria)

    def allowed(self, criteria: Criteria) -> Bools | None:
        """One truth for each leaf; None: all are allowed."""
        if not self.nodes:
            return None
        mask = self._masks.get(criteria)
        if mask is None:
            if len(self._masks) == _MASKS_KEPT:
                self._masks.clear()
            mask = self._tolerated(criteria) & self._selected(criteria) & self._accepted(criteria)
            self._masks[criteria] = mask
        return mask

    def refusals(self, criteria: Criteria) -> Counter[str]:
        """How many nodes each objection keeps out, in Kueue's words; a node counts for its first one only."""
        found: Counter[str] = Counter()
        if not self.nodes:
            return found
        here = np.array([node is not None for node in self.nodes], dtype=np.bool_)
        tolerated, selected = self._tolerated(criteria), self._selected(criteria)
        for leaf in np.flatnonzero(here & ~tolerated).tolist():
            node = self.nodes[leaf]
            taint = None if node is None else untolerated(node.taints, criteria.tolerations)
            if taint is not None:
                found[f'taint "{_shown(taint)}"'] += 1
        found["nodeSelector"] = int((here & tolerated & ~selected).sum())
        refused = here & tolerated & selected & ~self._accepted(criteria)
        found["affinity"] = int(refused.sum())
        return +found

    def _tolerated(self, criteria: Criteria) -> Bools:
        if self._taints is None:
            self._taints = Column.of([_taints(node) for node in self.nodes])
        return self._taints.where(lambda taints: untolerated(taints, criteria.tolerations) is None)

    def _selected(self, criteria: Criteria) -> Bools:
        mask = np.ones(len(self.nodes), dtype=np.bool_)
        for key, value in criteria.selector:
            mask &= self._column(key).where(partial(eq, value))
        return mask

    def _accepted(self, criteria: Criteria) -> Bools:
        """Terms are alternatives; one that asks for nothing accepts nothing, as in Kubernetes."""
        if criteria.affinity is None:
            return np.ones(len(self.nodes), dtype=np.bool_)
        mask = np.zeros(len(self.nodes), dtype=np.bool_)
        for term in criteria.affinity.terms:
            if term:
                mask |= np.logical_and.reduce([self._meeting(one) for one in term])
        return mask

    def _meeting(self, requirement: Requirement) -> Bools:
        return self._column(requirement.key).where(partial(_meets, requirement))

    def _column(self, key: str) -> Column[str | None]:
        if key not in self._labels:
            self._labels[key] = Column.of([_label(node, key) for node in self.nodes])
        return self._labels[key]


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps such a pod out."""
    for taint in taints:
        if taint.keeps_out and not any(one.tolerates(taint) for one in tolerations):
            return taint
    return None


def _look_alike(one: Node, other: Node) -> bool:
    return one.labels == other.labels and one.taints == other.taints


def _admits(node: Node, criteria: Criteria) -> bool:
    """The same for one node."""
    if untolerated(node.taints, criteria.tolerations) is not None:
        return False
    if any(_label(node, key) != value for key, value in criteria.selector):
        return False
    return criteria.affinity is None or any(
        term and all(_meets(one, _label(node, one.key)) for one in term)
        for term in criteria.affinity.terms
    )


def _meets(requirement: Requirement, value: str | None) -> bool:
    return requirement.matches({} if value is None else {requirement.key: value})


def _label(node: Node | None, key: str) -> str | None:
    if node is None:
        return None
    return node.name if key == NODE_NAME else node.labels.get(key)


def _taints(node: Node | None) -> tuple[Taint, ...]:
    return () if node is None else node.taints


def _shown(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return (
        f"{taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else f"{taint.key}:{taint.effect}"
    )

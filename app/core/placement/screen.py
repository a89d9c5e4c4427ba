"""Which leaves may a pod use at all?

Where leaves are nodes, a pod needs a node whose taints it tolerates, whose labels its node selector matches and its
required affinity accepts. The answer is a mask, kept for every class of pods until some node's taints or labels change.
Labels are encoded column by column, the first time a key is asked for. Where a leaf is a group of nodes there is no one
node to judge, and nothing is screened: the rule of Kueue's matchNode.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from app.core.model import Node
from app.core.placement.arrays import Bools, Ints
from app.core.selectors import NodeAffinity, Requirement, Taint, Toleration

_Value = TypeVar("_Value")

#: The key under which a node selector term asks for a node's own name (``matchFields``).
NODE_NAME = "metadata.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """What a class of pods tolerates and wants; tolerations of the flavor included."""

    tolerations: tuple[Toleration, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeAffinity | None = None


@dataclass(slots=True, eq=False)
class Screen:
    """`nodes` are those of the leaves, None where one is away; empty where leaves are no nodes."""

    nodes: list[Node | None]
    _columns: dict[str, tuple[Ints, list[str | None]]] = field(default_factory=dict)
    _taints: tuple[Ints, list[tuple[Taint, ...]]] | None = None
    _masks: dict[Criteria, Bools] = field(default_factory=dict)

    def change(self, leaf: int, node: Node | None) -> None:
        """A node came, went or looks different now."""
        old, self.nodes[leaf] = self.nodes[leaf], node
        if old is None or node is None or old.labels != node.labels or old.taints != node.taints:
            self._columns, self._taints, self._masks = {}, None, {}

    def allowed(self, criteria: Criteria) -> Bools | None:
        """One truth for each leaf; None: all are allowed."""
        if not self.nodes:
            return None
        mask = self._masks.get(criteria)
        if mask is None:
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
        codes, sets = self._taint_sets()
        fine = [untolerated(taints, criteria.tolerations) is None for taints in sets]
        return np.array(fine, dtype=np.bool_)[codes]

    def _selected(self, criteria: Criteria) -> Bools:
        mask = np.ones(len(self.nodes), dtype=np.bool_)
        for key, value in criteria.selector:
            codes, values = self._column(key)
            mask &= np.array([one == value for one in values], dtype=np.bool_)[codes]
        return mask

    def _accepted(self, criteria: Criteria) -> Bools:
        """Terms are alternatives; one that asks for nothing accepts nothing, as in Kubernetes."""
        if criteria.affinity is None:
            return np.ones(len(self.nodes), dtype=np.bool_)
        mask = np.zeros(len(self.nodes), dtype=np.bool_)
        for term in criteria.affinity.terms:
            if term:
                mask |= np.logical_and.reduce([self._meets(one) for one in term])
        return mask

    def _meets(self, requirement: Requirement) -> Bools:
        codes, values = self._column(requirement.key)
        labels = [{} if value is None else {requirement.key: value} for value in values]
        return np.array([requirement.matches(one) for one in labels], dtype=np.bool_)[codes]

    def _column(self, key: str) -> tuple[Ints, list[str | None]]:
        if key not in self._columns:
            self._columns[key] = _encoded([_label(node, key) for node in self.nodes])
        return self._columns[key]

    def _taint_sets(self) -> tuple[Ints, list[tuple[Taint, ...]]]:
        if self._taints is None:
            self._taints = _encoded([() if node is None else node.taints for node in self.nodes])
        return self._taints


def untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps such a pod out."""
    return next(_untolerated(taints, tolerations), None)


def _untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Iterator[Taint]:
    for taint in taints:
        if taint.keeps_out and not any(one.tolerates(taint) for one in tolerations):
            yield taint


def _label(node: Node | None, key: str) -> str | None:
    if node is None:
        return None
    return node.name if key == NODE_NAME else node.labels.get(key)


def _encoded(values: Sequence[_Value]) -> tuple[Ints, list[_Value]]:
    codes: Mapping[_Value, int] = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return np.array([codes[value] for value in values], dtype=np.int64), list(codes)


def _shown(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return (
        f"{taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else f"{taint.key}:{taint.effect}"
    )

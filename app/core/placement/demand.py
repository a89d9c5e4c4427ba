"""What exactly does a pod set ask of this topology?

Translates a request that names levels by their labels into numbers of the tree, and refuses, in Kueue's words, what
makes no sense here: an unknown level, slices wider than the pod set's own level, layers that do not nest. A pod set
without a request of its own is placed anywhere (implied). Slices without a level span the whole tree.
"""

from dataclasses import dataclass, field
from enum import Enum

from app.core.placement.screen import Criteria
from app.core.placement.stock import MOST_ASKED
from app.core.resources import PODS, Requests
from app.core.topology import SliceLayer, TopologyRequest

#: Requests in a canonical order, so that equal shapes are equal keys.
Asked = tuple[tuple[str, int], ...]


class Nearness(Enum):
    REQUIRED = "required"
    PREFERRED = "preferred"
    UNCONSTRAINED = "unconstrained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Slices of `size` pods share a domain of `level`; `inner` are finer layers: below each level, its multiple."""

    level: int
    size: int = 1
    inner: tuple[tuple[int, int], ...] = ()

    def multiple(self, level: int) -> int:
        """Pods go to domains of this level in multiples of so many; 1 where nothing is asked."""
        return dict(self.inner).get(level, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All that the counts of a tree depend on: pod sets of equal shapes are counted once."""

    asked: Asked
    leader: Asked | None = None
    criteria: Criteria = field(default_factory=Criteria)
    leader_criteria: Criteria = field(default_factory=Criteria)
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    shape: Shape
    count: int
    nearness: Nearness
    level: int  # of the tree, where the search begins
    layers: tuple[SliceLayer, ...] = ()  # as they were asked for, to explain a misfit
    balanced: bool = False  # spread evenly over the fewest domains (KEP-2724, balanced placement)
    within: tuple[int, int] | None = None  # only these leaves

    @property
    def layout(self) -> Layout:
        return self.shape.layout

    @property
    def slices(self) -> int:
        return self.count // self.layout.size

    @property
    def leaders(self) -> int:
        return 0 if self.shape.leader is None else 1

    @property
    def packs(self) -> bool:
        """The largest domains first and the tightest last; otherwise the smallest first."""
        return self.nearness is not Nearness.UNCONSTRAINED


class Unplaceable(ValueError):
    """The request makes no sense in this topology; the message is Kueue's."""


def asked_per_pod(requests: Requests) -> Asked:
    """What one pod takes of a leaf: its requests, and a place for a pod."""
    amounts = {**requests, PODS: requests.get(PODS, 0) + 1}
    return tuple(
        (resource, min(value, MOST_ASKED)) for resource, value in sorted(amounts.items()) if value
    )


def search_level(request: TopologyRequest | None, levels: tuple[str, ...]) -> tuple[Nearness, int]:
    """How near, and the level where the search begins; raises for a level that is not there."""
    if request is None or not request.is_explicit:
        return Nearness.UNCONSTRAINED, len(levels) - 1
    if request.required:
        return Nearness.REQUIRED, _find(levels, request.required)
    if request.preferred:
        return Nearness.PREFERRED, _find(levels, request.preferred)
    return Nearness.UNCONSTRAINED, 0 if request.slices else len(levels) - 1


def layout_of(request: TopologyRequest | None, levels: tuple[str, ...], level: int) -> Layout:
    """The slices, as levels of the tree; raises when they do not nest below `level`."""
    bottom = len(levels) - 1
    if request is None or not request.slices:
        return Layout(level=bottom)
    outer, *finer = request.slices
    if outer.size < 1:
        raise Unplaceable("slice topology requested, but slice size not provided")
    if outer.topology not in levels:
        raise Unplaceable(f"no requested topology level for slices: {outer.topology}")
    at = levels.index(outer.topology)
    if level > at:
        raise Unplaceable(
            f"podset slice topology {outer.topology} is above the podset topology {levels[level]}"
        )
    inner: dict[int, int] = {}
    above, size = at, outer.size
    for layer in finer:
        below = _finer_level(layer, levels, above, size)
        inner |= dict.fromkeys(range(above + 1, below + 1), layer.size)
        above, size = below, layer.size
    return Layout(level=at, size=outer.size, inner=tuple(inner.items()))


def _finer_level(layer: SliceLayer, levels: tuple[str, ...], above: int, size: int) -> int:
    if layer.topology not in levels:
        raise Unplaceable(
            f"no requested topology level for additional slice layer: {layer.topology}"
        )
    below = levels.index(layer.topology)
    if below <= above:
        raise Unplaceable(
            f"additional slice layer topology {layer.topology} must be at a lower level than {levels[above]}"
        )
    if layer.size < 1 or size % layer.size:
        raise Unplaceable(
            f"additional slice layer size {layer.size} must evenly divide parent layer size {size}"
        )
    return below


def _find(levels: tuple[str, ...], wanted: str) -> int:
    if wanted not in levels:
        raise Unplaceable(f"no requested topology level: {wanted}")
    return levels.index(wanted)

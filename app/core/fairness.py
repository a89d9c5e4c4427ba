"""How far above its quota does a node live, compared with what it could borrow?

The dominant resource share of KEP-1714: per resource, the usage above the subtree quota in thousandths of all that
the parent could lend; the largest of them counts, divided by the node's weight. Roots have no share. Shares are exact
fractions; floats are only a shortcut where they differ already. A node of weight zero that borrows is beyond every
finite share, and two such are compared without their weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import total_ordering

from app.core.node import Node
from app.core.quantity import UNLIMITED
from app.core.resources import FlavorResource, Usage

_NOTHING: Usage = {}


_Order = tuple[bool, float, Fraction]


@total_ordering
@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    ratio: Fraction = Fraction(0)  # thousandths, before the weight
    weight_nanos: int = 10**9
    resource: str = ""
    borrowing: bool = False
    _order: _Order = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Rounding a fraction to a float keeps the order, so equal floats alone need the fraction."""
        value = self.ratio if self.is_infinite else self.weighted
        object.__setattr__(self, "_order", (self.is_infinite, float(value), value))

    @property
    def is_infinite(self) -> bool:
        return self.weight_nanos == 0 and self.ratio > 0

    @property
    def weighted(self) -> Fraction:
        """Meaningful while the share is finite."""
        return self.ratio * 10**9 / self.weight_nanos if self.ratio else Fraction(0)

    @property
    def rounded(self) -> int:
        """As shown in a status: rounded up, the int64 maximum for an infinite share."""
        if self.is_infinite:
            return UNLIMITED
        return -(-self.weighted.numerator // self.weighted.denominator)

    def __lt__(self, other: "Share") -> bool:
        return self._order < other._order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Share) and self._order == other._order

    def __hash__(self) -> int:
        return hash(self._order)


def share(node: Node, extra: Usage = _NOTHING) -> Share:
    """The share of a node, with `extra` on top of its usage."""
    if node.parent is None:
        return Share(weight_nanos=node.weight_nanos)
    over = _borrowed(node, extra)
    if not over:
        return Share(weight_nanos=node.weight_nanos)
    lendable = _lendable(node.parent, over)
    ratios = [
        (Fraction(amount * 1000, lendable[resource]), resource)
        for resource, amount in sorted(over.items())
        if lendable.get(resource, 0) > 0
    ]
    best = max((ratio for ratio, _ in ratios), default=Fraction(0))
    dominant = next((resource for ratio, resource in ratios if ratio == best), "")
    return Share(ratio=best, weight_nanos=node.weight_nanos, resource=dominant, borrowing=True)


def _borrowed(node: Node, extra: Usage) -> dict[str, int]:
    over: dict[str, int] = {}
    for fr in {**node.usage, **extra}:
        amount = node.used(fr) + extra.get(fr, 0) - node.subtree.get(fr, 0)
        if amount > 0:
            over[fr.resource] = over.get(fr.resource, 0) + amount
    return over


def _lendable(parent: Node, wanted: Mapping[str, int]) -> dict[str, int]:
    """Per resource, all that the parent could ever have, over the flavors known at the root."""
    root = parent.root
    known: list[FlavorResource] = [fr for fr in root.subtree if fr.resource in wanted]
    total: dict[str, int] = {}
    for fr in known:
        total[fr.resource] = min(total.get(fr.resource, 0) + parent.potential(fr), UNLIMITED)
    return total

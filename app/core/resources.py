"""In which units is each resource counted, and how do amounts add up?

CPU is counted in thousandths, everything else in whole units; an amount is a plain ``int``. ``UNLIMITED`` is sticky:
it survives addition and subtraction, so a saturated quota never becomes a finite one by arithmetic. The pair of
flavor and resource is the coordinate of every quota and every usage.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.core.quantity import UNLIMITED, Family, Quantity, format_quantity, parse

CPU = "cpu"
PODS = "pods"

_BINARY_RESOURCES = ("memory", "ephemeral-storage")

_UNLIMITED_CPU = UNLIMITED // 1000 * 1000

#: Resource name -> amount, in the resource's own unit.
Requests = Mapping[str, int]


class FlavorResource(NamedTuple):
    """The coordinate of a quota: which hardware, and what of it."""

    flavor: str
    resource: str


#: (flavor, resource) -> amount.
Usage = Mapping[FlavorResource, int]


def amount(resource: str, text: Any) -> int:
    """Read a quantity in the unit its resource is counted in."""
    quantity = parse(text)
    return quantity.milli if resource == CPU else quantity.whole


def quota(resource: str, text: Any) -> int:
    """Read a quantity that grants quota: so much CPU that its thousandths crowd an int64 is unlimited."""
    value = amount(resource, text)
    return UNLIMITED if resource == CPU and value >= _UNLIMITED_CPU else value


def written(resource: str, value: int) -> str:
    """Write an amount as the canonical quantity that Kubernetes would show."""
    if resource == CPU:
        return format_quantity(Quantity(value * 10**6))
    binary = resource in _BINARY_RESOURCES or resource.startswith("hugepages-")
    return format_quantity(Quantity(value * 10**9), Family.BINARY if binary else Family.DECIMAL)


def plus(left: int, right: int) -> int:
    """Add; what reaches the limit is unlimited, and unlimited it stays."""
    if left == UNLIMITED or right == UNLIMITED:  # noqa: PLR1714 - asked a million times
        return UNLIMITED
    summed = left + right
    return summed if summed < UNLIMITED else UNLIMITED  # noqa: FURB136


def minus(left: int, right: int) -> int:
    """Subtract; taking something finite from the unlimited leaves it unlimited, taking all of it leaves nothing."""
    if left == UNLIMITED:
        return 0 if right >= UNLIMITED else UNLIMITED
    return left - right


def times(value: int, count: int) -> int:
    """Multiply by a number of pods, saturating."""
    return min(value * count, UNLIMITED)


def total(*parts: Requests) -> dict[str, int]:
    """Sum requests resource by resource."""
    if len(parts) == 1:
        return dict(parts[0])
    summed: dict[str, int] = {}
    for part in parts:
        for resource, value in part.items():
            summed[resource] = plus(summed.get(resource, 0), value)
    return summed

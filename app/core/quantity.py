"""What number does a Kubernetes quantity mean, and how is a number written as one?

The grammar is Kubernetes' own: a decimal number with an optional suffix (``n u m k M G T P E``, ``Ki Mi Gi Ti Pi Ei``
or a decimal exponent). Values are exact integers of one billionth; anything finer is rounded away from zero, as
Kubernetes does, and anything at or above the int64 limit saturates to ``UNLIMITED``. The parser is bounded in length
and exponent, so no text, however hostile, costs more than a microsecond or two.

Which unit a resource is counted in is a question for ``resources``, not for this module.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

#: The int64 maximum. Quantities this large mean "no limit" and stay so under addition.
UNLIMITED = 2**63 - 1

_NANO = 10**9
_MAX_LENGTH = 64
_MAX_EXPONENT = 48


class QuantityError(ValueError):
    """The text is not a quantity; the message is one sentence for whoever wrote it."""


class Family(Enum):
    """The way a quantity was written, which its canonical form keeps."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount. Compares by value: ``1Gi`` equals ``1073741824``."""

    nanos: int

    @property
    def milli(self) -> int:
        """Thousandths, rounded away from zero, saturating at ``UNLIMITED``."""
        return _saturated(_divided(self.nanos, _NANO // 1000))

    @property
    def whole(self) -> int:
        """Units, rounded away from zero, saturating at ``UNLIMITED``."""
        return _saturated(_divided(self.nanos, _NANO))


_SHAPE = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,4}))?",
    re.ASCII,
)
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = {10: "Ki", 20: "Mi", 30: "Gi", 40: "Ti", 50: "Pi", 60: "Ei"}
_TENS = {suffix: power for power, suffix in _DECIMAL.items() if suffix}
_TWOS = {suffix: power for power, suffix in _BINARY.items()}


def parse(text: Any) -> Quantity:
    """Read a quantity as it stands in a manifest: a string, or a number that was not quoted."""
    match = _SHAPE.fullmatch(_as_text(text))
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(f"{_shown(text)} is not a quantity such as 500m, 2, 1.5 or 4Gi.")
    part = match["part"] or ""
    digits = int((match["whole"] or "") + part)
    tens = _exponent(match) - len(part) + 9
    twos = _TWOS.get(match["suffix"] or "", 0)
    scaled = digits << twos
    nanos = scaled * 10**tens if tens >= 0 else _divided(scaled, 10**-tens)
    nanos = min(nanos, UNLIMITED * _NANO)
    return Quantity(-nanos if match["sign"] == "-" else nanos)


def format_quantity(quantity: Quantity, family: Family = Family.DECIMAL) -> str:
    """Write the canonical form: the largest suffix of the family that leaves no fraction."""
    nanos = quantity.nanos
    if nanos == 0:
        return "0"
    if family is Family.BINARY and nanos % _NANO == 0 and abs(nanos) >= 1024 * _NANO:
        number = nanos // _NANO
        power = max((p for p in _BINARY if number % (1 << p) == 0), default=0)
        return f"{number >> power}{_BINARY.get(power, '')}"
    power = max(p for p in _DECIMAL if nanos % 10 ** (p + 9) == 0)
    number = nanos // 10 ** (power + 9)
    if family is Family.EXPONENT:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL[power]}"


def canonical(text: Any) -> str:
    """Rewrite a quantity canonically in the family it was written in."""
    match = _SHAPE.fullmatch(_as_text(text))
    if match and match["exponent"]:
        family = Family.EXPONENT
    else:
        family = Family.BINARY if match and match["suffix"] in _TWOS else Family.DECIMAL
    return format_quantity(parse(text), family)


def _as_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(f"{_shown(value)} is not a quantity: write a number or a string.")
    if isinstance(value, int) and abs(value) >= 10**_MAX_LENGTH:
        raise QuantityError("The quantity is too long to be meant.")
    text = value if isinstance(value, str) else repr(value)
    if len(text) > _MAX_LENGTH:
        raise QuantityError(f"{_shown(text)} is too long for a quantity.")
    return text


def _exponent(match: re.Match[str]) -> int:
    if match["exponent"] is None:
        return _TENS.get(match["suffix"] or "", 0)
    exponent = int(match["exponent"])
    if abs(exponent) > _MAX_EXPONENT:
        raise QuantityError(f"{_shown(match.string)} has an exponent beyond {_MAX_EXPONENT}.")
    return exponent


def _divided(number: int, by: int) -> int:
    """Divide, rounding away from zero."""
    return -(-number // by) if number >= 0 else number // by


def _saturated(number: int) -> int:
    return max(-UNLIMITED, min(number, UNLIMITED))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"

"""Durations as Go writes them: ``30m``, ``1h30m``, ``250ms``, ``0s``."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

_UNITS = {
    "ns": 0.001,
    "us": 1,
    "µs": 1,
    "ms": 1000,
    "s": 10**6,
    "m": 60 * 10**6,
    "h": 3600 * 10**6,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)", re.ASCII)
_MOST = timedelta(hours=2_562_047)  # Go's own limit: int64 nanoseconds


def parse(text: str) -> timedelta:
    """Raises ValueError for anything Go would not read."""
    if len(text) > 64 or not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration such as 30m, 1h30m or 250ms")
    micros = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    try:
        found = timedelta(microseconds=round(micros))
    except OverflowError:
        found = timedelta.max
    if found > _MOST:
        raise ValueError(f"{text!r} is longer than 292 years")
    return -found if text.startswith("-") else found


def _validated(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    try:
        found = parse(value if isinstance(value, str) else str(type(value)))
    except ValueError:
        words = 'must be a duration such as "30m", "1h30m" or "0s"'
        raise PydanticCustomError("duration", words) from None
    if found < timedelta():
        raise PydanticCustomError("duration", "must be greater than or equal to 0")
    return found


#: Zero or more.
Duration = Annotated[timedelta, PlainValidator(_validated), WithJsonSchema({"type": "string"})]

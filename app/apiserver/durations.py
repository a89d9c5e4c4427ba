"""How kubectl prints an age: ``45s``, ``3m20s``, ``5h``, ``2d4h``, ``400d``, ``2y30d``.

Tables carry printed cells, so the server has to word ages the way people are used to.
"""

from datetime import UTC, datetime

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

# Below this many seconds: print in this unit, and the rest in that one if it is not zero.
_STEPS = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def age(timestamp: str | None, now: datetime) -> str:
    """The time from an RFC 3339 timestamp to `now`; ``<unknown>`` without one, ``<invalid>`` if in the future."""
    if not timestamp:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return duration(int((now - then).total_seconds()))


def duration(seconds: int) -> str:
    if seconds < -1:
        return "<invalid>"
    seconds = max(0, seconds)
    for limit, (unit, letter), rest in _STEPS:
        if seconds < limit:
            return _print(seconds, unit, letter, rest)
    return f"{seconds // _YEAR}y"


def _print(seconds: int, unit: int, letter: str, rest: tuple[int, str] | None) -> str:
    head = f"{seconds // unit}{letter}"
    if rest is None:
        return head
    remainder = seconds % unit // rest[0]
    return f"{head}{remainder}{rest[1]}" if remainder else head

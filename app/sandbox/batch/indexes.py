"""How are completion indexes written, and which come next?

``status.completedIndexes`` lists them compressed: ``1,3-5,7``; two neighbours are written ``3,4``, as the real
controller does.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import islice


def parse(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def write(indexes: Iterable[int]) -> str:
    return ",".join(_written(first, last) for first, last in _runs(sorted(set(indexes))))


def first_missing(taken: AbstractSet[int], completions: int, count: int) -> tuple[int, ...]:
    """Return the lowest `count` indexes that are not taken."""
    return tuple(islice((one for one in range(completions) if one not in taken), count))


def _runs(ordered: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for index in ordered:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs


def _written(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"

"""Keys that a body gives twice: remembered where they were found, told with their path.

Parsers build their maps with a `Maps`, which keeps the last value, as Kubernetes does, and marks the map; the paths are
worked out only when something was marked, since almost no body has duplicates.
"""

from typing import Any


class Doubled(dict[str, Any]):
    """A map whose text had some keys more than once."""

    __slots__ = ("twice",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.twice: list[str] = []
        for key, _ in pairs:
            if key in seen and key not in self.twice:
                self.twice.append(key)
            seen.add(key)


class Maps:
    """Builds the maps of one body."""

    def __init__(self) -> None:
        self._any_doubled = False

    def build(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        self._any_doubled = True
        return Doubled(pairs)

    def duplicates(self, value: Any) -> list[str]:
        return _duplicate_paths(value, "") if self._any_doubled else []


def _duplicate_paths(value: Any, path: str) -> list[str]:
    """Paths of all keys given twice, outermost first: ``spec.parallelism``, ``spec.items[0].name``."""
    found: list[str] = []
    if isinstance(value, dict):
        if isinstance(value, Doubled):
            found += [_join(path, key) for key in value.twice]
        for key, below in value.items():
            found += _duplicate_paths(below, _join(path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += _duplicate_paths(below, f"{path}[{index}]")
    return found


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key

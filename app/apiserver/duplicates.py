"""Keys that a body gives twice: remembered where they were found, told with their path.

Parsers keep the last value, as Kubernetes does, and mark the map; the paths are worked out only when something was
marked, since almost no body has duplicates.
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


def build_map(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Doubled(pairs)


def duplicate_paths(value: Any, path: str = "") -> list[str]:
    """Paths of all keys given twice, outermost first: ``spec.parallelism``, ``spec.items[0].name``."""
    found: list[str] = []
    if isinstance(value, dict):
        if isinstance(value, Doubled):
            found += [_join(path, key) for key in value.twice]
        for key, below in value.items():
            found += duplicate_paths(below, _join(path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += duplicate_paths(below, f"{path}[{index}]")
    return found


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key

"""How much is placed in every domain, by whom it may be seen, and how is a trial taken back?

The exact memory behind the stocks. An entry belongs to a domain as assignments name it: a host is the same machine in
every flavor, so what is placed on it counts in all flavors whose topology goes down to hosts; any other domain counts
in its own flavor only. Entries outlive the nodes: a node that comes back finds its pods still counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.core.placement.demand import Asked
from app.core.placement.tree import Path
from app.core.topology import HOSTNAME, TopologyAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupation:
    """The pods of one pod set where they were placed, and what each of them takes."""

    flavor: str
    assignment: TopologyAssignment
    asked: Asked

    @property
    def scope(self) -> str:
        """The flavor that sees it; empty: every one that knows hosts."""
        return "" if self.assignment.levels == (HOSTNAME,) else self.flavor


_NOTHING: Mapping[str, int] = {}


@dataclass(slots=True, eq=False)
class Ledger:
    _entries: dict[tuple[str, Path], dict[str, int]] = field(default_factory=dict)

    def book(self, occupation: Occupation, sign: int) -> None:
        for values, count in occupation.assignment.domains:
            entry = self._entries.setdefault((occupation.scope, values), {})
            for resource, amount in occupation.asked:
                entry[resource] = entry.get(resource, 0) + sign * count * amount

    def held(self, scope: str, values: Path) -> Mapping[str, int]:
        return self._entries.get((scope, values), _NOTHING)

    def of(self, scope: str) -> Iterable[tuple[Path, Mapping[str, int]]]:
        return [(values, entry) for (seen, values), entry in self._entries.items() if seen == scope]

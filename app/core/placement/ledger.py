"""How much is placed in every domain, and who sees it?

The exact memory behind the stocks. An entry belongs to a domain as assignments name it: a host is the same machine in
every flavor, so what is placed on it counts in all flavors whose topology goes down to hosts; any other domain counts
in its own flavor only. Entries outlive the nodes: a node that comes back finds its pods still counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.core.placement.demand import Asked
from app.core.placement.tree import Path
from app.core.topology import HOSTNAME, TopologyAssignment

_NOTHING: Mapping[str, int] = {}


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


@dataclass(slots=True, eq=False)
class Ledger:
    _entries: dict[str, dict[Path, dict[str, int]]] = field(default_factory=dict)

    def book(self, occupation: Occupation, sign: int) -> None:
        """Put the pods there, or with a sign of -1 take them away."""
        entries = self._entries.setdefault(occupation.scope, {})
        for values, count in occupation.assignment.domains:
            entry = entries.setdefault(values, {})
            for resource, amount in occupation.asked:
                entry[resource] = entry.get(resource, 0) + sign * count * amount
            if not any(entry.values()):
                del entries[values]

    def held(self, scope: str, values: Path) -> Mapping[str, int]:
        return self._entries.get(scope, {}).get(values, _NOTHING)

    def entries(self, scope: str) -> Mapping[Path, Mapping[str, int]]:
        """All domains where anything is placed."""
        return self._entries.get(scope, {})

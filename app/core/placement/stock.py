"""What is still free on every leaf, and which leaves changed since somebody looked last?

One array per resource. The *ground* is what the nodes offer to us: what they can allocate, less what pods of no concern
to us take. A stock is the ground less what is placed on it; a site keeps two, one with everything that is admitted and
one as if nothing were. Usage is kept exactly, so that taking it back restores every number; amounts beyond a bound that
no machine reaches are cut where they enter an array.

A stock writes down the leaves it touches. Whoever keeps something computed from it remembers how far it had read
(``mark``), asks for what came later (``since``), and starts over when that is no longer known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.core.placement.arrays import Ints, zeros
from app.core.resources import Requests

_MOST_OFFERED = 2**52
_MOST_USED = 2**60

#: Larger than anything on offer: such a request fits nowhere.
MOST_ASKED = 2**53


@dataclass(slots=True, eq=False)
class Ground:
    """What the leaves offer."""

    size: int
    offered: dict[str, Ints] = field(default_factory=dict)

    def set(self, leaf: int, amounts: Requests) -> None:
        for resource in amounts:
            if resource not in self.offered:
                self.offered[resource] = zeros(self.size)
        for resource, offered in self.offered.items():
            value = amounts.get(resource, 0)
            offered[leaf] = max(-_MOST_OFFERED, min(value, _MOST_OFFERED))


@dataclass(slots=True, eq=False)
class Stock:
    ground: Ground
    free: dict[str, Ints] = field(default_factory=dict)
    used: dict[int, dict[str, int]] = field(default_factory=dict)
    changed: list[int] = field(default_factory=list)
    forgotten: int = 0  # changes that are no longer in the list

    def __post_init__(self) -> None:
        self.free = {resource: offered.copy() for resource, offered in self.ground.offered.items()}

    def use(self, leaf: int, amounts: Requests, count: int) -> None:
        """Put `count` pods of these amounts on a leaf; a negative count takes them off again."""
        used = self.used.setdefault(leaf, {})
        for resource, value in amounts.items():
            used[resource] = used.get(resource, 0) + value * count
            self._write(leaf, resource, used[resource])
        self._note(leaf)

    def refresh(self, leaf: int) -> None:
        """The ground changed here."""
        used = self.used.get(leaf, {})
        for resource in self.ground.offered:
            self._write(leaf, resource, used.get(resource, 0))
        self._note(leaf)

    def room(self, leaf: int, resource: str) -> int:
        free = self.free.get(resource)
        return 0 if free is None else int(free[leaf])

    def mark(self) -> int:
        """How much has been written down so far."""
        return self.forgotten + len(self.changed)

    def since(self, mark: int) -> list[int] | None:
        """The leaves touched since that mark; None when there were too many to tell."""
        return None if mark < self.forgotten else self.changed[mark - self.forgotten :]

    def _write(self, leaf: int, resource: str, used: int) -> None:
        offered = self.ground.offered.get(resource)
        if offered is None:
            return  # nothing here has any of it, so no request for it fits
        free = self.free.get(resource)
        if free is None:
            free = self.free[resource] = offered.copy()
        free[leaf] = max(-_MOST_USED, int(offered[leaf]) - used)

    def _note(self, leaf: int) -> None:
        self.changed.append(leaf)
        if len(self.changed) > 2 * self.ground.size + 1024:
            self.forgotten += len(self.changed)
            self.changed.clear()

"""What is still free on every leaf, and which leaves changed since somebody looked last?

One array per resource. The *ground* is what the nodes offer to us: what they can allocate, less what pods of no concern
to us take. A stock is the ground less what is placed on it; a site keeps two, one with everything that is admitted and
one as if nothing were. The exact amounts are the ``ledger``'s, from which a leaf is written; on trial, amounts are
shifted and what was there before is put back. Amounts beyond a bound that no machine reaches are cut.

A stock notes the leaves it writes. Whoever keeps something computed from it remembers how far it had read (``mark``),
asks for what came later (``since``), and starts over when that is no longer known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.placement.arrays import Ints, zeros
from app.core.resources import Requests

_MOST_OFFERED = 2**52
_MOST_OWED = 2**60

#: Larger than anything on offer: such a request fits nowhere.
MOST_ASKED = 2**53


@dataclass(slots=True, eq=False)
class Ground:
    """What the leaves offer."""

    size: int
    offered: dict[str, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, offers: Sequence[Requests]) -> "Ground":
        """Leaf by leaf."""
        resources = dict.fromkeys(resource for offer in offers for resource in offer)
        return cls(
            len(offers),
            {
                resource: _column([offer.get(resource, 0) for offer in offers])
                for resource in resources
            },
        )

    def set(self, leaf: int, amounts: Requests) -> None:
        for resource in amounts:
            if resource not in self.offered:
                self.offered[resource] = zeros(self.size)
        for resource, offered in self.offered.items():
            offered[leaf] = _within(amounts.get(resource, 0), _MOST_OFFERED)


@dataclass(slots=True, eq=False)
class Stock:
    ground: Ground
    free: dict[str, Ints] = field(default_factory=dict)
    _noted: list[int] = field(default_factory=list)
    _forgotten: int = 0  # notes that are no longer in the list

    @classmethod
    def of(cls, ground: Ground, holdings: Iterable[tuple[int, Mapping[str, int]]]) -> "Stock":
        """The ground less what some leaves hold."""
        leaves, held = zip(*holdings, strict=True) if (holdings := list(holdings)) else ((), ())
        at = np.array(leaves, dtype=np.int64)
        free = {resource: offered.copy() for resource, offered in ground.offered.items()}
        for resource, left in free.items():
            used = [_within(used.get(resource, 0), _MOST_OWED) for used in held]
            left[at] -= np.array(used, dtype=np.int64)
        return cls(ground, free)

    def write(self, leaves: Sequence[int], held: Sequence[Mapping[str, int]]) -> None:
        """These leaves hold so much now, and their ground may have changed."""
        at = np.array(leaves, dtype=np.int64)
        for resource, offered in self.ground.offered.items():
            used = [_within(one.get(resource, 0), _MOST_OWED) for one in held]
            self._of(resource, offered)[at] = offered[at] - np.array(used, dtype=np.int64)
        self._note(leaves)

    def shift(self, leaves: Sequence[int], pods: Sequence[int], asked: Requests) -> "Undo":
        """Put so many pods more on these leaves, or fewer; what comes back takes that back."""
        at, counts = np.array(leaves, dtype=np.int64), np.array(pods, dtype=np.int64)
        most = _MOST_OWED // max(1, max(map(abs, pods), default=1))
        before: dict[str, Ints] = {}
        for resource, amount in asked.items():
            offered = self.ground.offered.get(resource)
            if offered is None:
                continue  # no leaf has any of it, so no request for it fits
            free = self._of(resource, offered)
            before[resource] = free[at]
            shifted = before[resource] - counts * min(amount, most)
            free[at] = np.maximum(np.minimum(shifted, _MOST_OWED), -_MOST_OWED)
        self._note(leaves)
        return Undo(self, leaves, before)

    def put_back(self, leaves: Sequence[int], before: Mapping[str, Ints]) -> None:
        at = np.array(leaves, dtype=np.int64)
        for resource, free in before.items():
            self.free[resource][at] = free
        self._note(leaves)

    def room(self, leaf: int, resource: str) -> int:
        free = self.free.get(resource)
        return 0 if free is None else int(free[leaf])

    def mark(self) -> int:
        """How much has been noted so far."""
        return self._forgotten + len(self._noted)

    def since(self, mark: int) -> list[int] | None:
        """The leaves written since that mark; None when that is no longer known."""
        return None if mark < self._forgotten else self._noted[mark - self._forgotten :]

    def _of(self, resource: str, offered: Ints) -> Ints:
        if resource not in self.free:
            self.free[resource] = offered.copy()
        return self.free[resource]

    def _note(self, leaves: Sequence[int]) -> None:
        self._noted += leaves
        if len(self._noted) > 2 * self.ground.size + 1024:
            self._forgotten += len(self._noted)
            self._noted.clear()


@dataclass(frozen=True, slots=True, eq=False)
class Undo:
    """What some leaves of a stock had free before."""

    stock: Stock
    leaves: Sequence[int]
    before: Mapping[str, Ints]

    def undo(self) -> None:
        self.stock.put_back(self.leaves, self.before)


def _column(values: Sequence[int]) -> Ints:
    return np.array([_within(value, _MOST_OFFERED) for value in values], dtype=np.int64)


def _within(value: int, most: int) -> int:
    return value if -most <= value <= most else most if value > 0 else -most

"""What is taken of a cluster: quota in the cohort trees and places on the nodes, moved together.

Whoever holds quota may hold places as well, and whoever is imagined away frees both. A trial covers both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

from app.core.model import Workload
from app.core.placement.ledger import Occupation
from app.core.placement.sites import Sites, SiteTrial
from app.core.quota import QuotaTree, Trial
from app.core.resources import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A workload that holds quota, how much of which, and where its pods are placed."""

    workload: Workload
    cluster_queue: str
    usage: Usage
    places: tuple[Occupation, ...] = ()


class BothTrial:
    """A trial of the trees and of the sites."""

    __slots__ = ("_sites", "_tree")

    def __init__(self, tree: Trial, sites: SiteTrial) -> None:
        self._tree, self._sites = tree, sites

    def __enter__(self) -> None:
        self._tree.__enter__()
        self._sites.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sites.__exit__(kind, error, trace)
        self._tree.__exit__(kind, error, trace)


@dataclass(frozen=True, slots=True, eq=False)
class Books:
    tree: QuotaTree
    sites: Sites

    def charge(
        self, queue: str, usage: Usage, places: tuple[Occupation, ...] = (), sign: int = 1
    ) -> None:
        """A queue takes quota and places, or with a sign of -1 gives them back."""
        self.tree.charge(queue, usage, sign)
        if places:
            self.sites.occupy(places, sign)

    def put(self, holding: Holding) -> None:
        self.charge(holding.cluster_queue, holding.usage, holding.places)

    def remove(self, holding: Holding) -> None:
        self.charge(holding.cluster_queue, holding.usage, holding.places, -1)

    def remove_all(self, holdings: Iterable[Holding]) -> None:
        for holding in holdings:
            self.remove(holding)

    def trial(self) -> BothTrial:
        """Everything moved inside is taken back at the end. Trials nest."""
        return BothTrial(self.tree.trial(), self.sites.trial())

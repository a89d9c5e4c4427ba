"""What does the quota of a cluster come to, worked out the slow way?

A second opinion on ``app.core.quota`` that shares nothing with it: it reads manifests, keeps no sums, and works every
number out anew. Twice over, in fact: by the formulae of Kueue's resource_node.go, and as a flow of quota through the
tree, which has neither guarantees nor subtree quotas. Every place passes on to its parent what it does not use itself,
at most its lending limit; what it lacks it takes from there, at most its borrowing limit. An allocation is lawful when
such a flow exists and nothing is missing at a root.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from app.core.metadata import Manifest, is_true, name_of, spec_of, status_of
from app.core.resources import FlavorResource, amount


class Place(NamedTuple):
    """A node of the cohort tree."""

    kind: str  # ClusterQueue or Cohort
    name: str


class Entry(NamedTuple):
    """What one place has of one flavor and resource."""

    nominal: int
    borrowing_limit: int | None
    lending_limit: int | None


def queue_at(name: str) -> Place:
    return Place("ClusterQueue", name)


class Books:
    """The quota and its use; `without` are uids of workloads to leave out."""

    def __init__(self, manifests: Iterable[Manifest], without: Iterable[str] = ()) -> None:
        told = list(manifests)
        left_out = frozenset(without)
        self.places = {
            Place(m["kind"], name_of(m)): m for m in told if m["kind"] in ("ClusterQueue", "Cohort")
        }
        for manifest in list(self.places.values()):
            parent = _parent_name(manifest)
            if parent is not None:
                self.places.setdefault(Place("Cohort", parent), _nothing(parent))
        self._above = {place: self._parent(place) for place in self.places}
        self._listed = {place: _entries(manifest) for place, manifest in self.places.items()}
        self.charges: dict[str, dict[FlavorResource, int]] = {}
        for manifest in told:
            if manifest["kind"] == "Workload" and manifest["metadata"]["uid"] not in left_out:
                self.charge(charged_to(manifest), charge(manifest))

    def charge(self, queue: str, usage: dict[FlavorResource, int]) -> None:
        """Let a queue use so much more."""
        own = self.charges.setdefault(queue, {})
        for fr, value in usage.items():
            own[fr] = own.get(fr, 0) + value

    # The tree

    def parent(self, place: Place) -> Place | None:
        """None also for what hangs below a cohort that is its own ancestor."""
        return self._above[place]

    def _parent(self, place: Place) -> Place | None:
        chain = [place]
        while (name := _parent_name(self.places[chain[-1]])) is not None:
            above = Place("Cohort", name)
            if above in chain:
                return None
            chain.append(above)
        return chain[1] if len(chain) > 1 else None

    def path(self, place: Place) -> Iterator[Place]:
        """From the place itself to its root."""
        at: Place | None = place
        while at is not None:
            yield at
            at = self.parent(at)

    def children(self, place: Place) -> list[Place]:
        return [one for one, above in self._above.items() if above == place]

    def is_cyclic(self, place: Place) -> bool:
        return self.parent(place) is None and _parent_name(self.places[place]) is not None

    def frs(self) -> set[FlavorResource]:
        """Every flavor and resource that anybody has or uses."""
        named = {fr for place in self.places for fr in self._listed[place]}
        return named | {fr for usage in self.charges.values() for fr in usage}

    # As a flow

    def balance(self, place: Place, fr: FlavorResource) -> int:
        """What this place leaves its parent, or takes from it if negative."""
        left = self.nominal(place, fr) - self.used_here(place, fr)
        left += sum(self.balance(child, fr) for child in self.children(place))
        limit = self.lending_limit(place, fr)
        return left if limit is None or self.parent(place) is None else min(left, limit)

    def is_lawful(self, place: Place, fr: FlavorResource) -> bool:
        """Does this place take no more from its parent than it may?"""
        if self.parent(place) is None:
            return self.balance(place, fr) >= 0
        limit = self.borrowing_limit(place, fr)
        return limit is None or self.balance(place, fr) >= -limit

    def fits(self, queue: str, usage: dict[FlavorResource, int]) -> bool:
        """Could the queue use so much more, and everybody on its way up stay lawful?"""
        path = list(self.path(queue_at(queue)))
        before = {(at, fr): self.balance(at, fr) for at in path for fr in usage}
        self.charge(queue, usage)
        moved = [key for key, balance in before.items() if self.balance(*key) < balance]
        lawful = all(self.is_lawful(*key) for key in moved)
        self.charge(queue, {fr: -value for fr, value in usage.items()})
        return lawful

    # By the formulae of Kueue

    def guaranteed(self, place: Place, fr: FlavorResource) -> int:
        limit = self.lending_limit(place, fr)
        return 0 if limit is None else max(0, self.subtree(place, fr) - limit)

    def subtree(self, place: Place, fr: FlavorResource) -> int:
        lent = (self.subtree(c, fr) - self.guaranteed(c, fr) for c in self.children(place))
        return self.nominal(place, fr) + sum(lent)

    def usage(self, place: Place, fr: FlavorResource) -> int:
        risen = (self.usage(c, fr) - self.guaranteed(c, fr) for c in self.children(place))
        return self.used_here(place, fr) + sum(max(0, over) for over in risen)

    def available(self, place: Place, fr: FlavorResource) -> int:
        """May be negative."""
        parent, used = self.parent(place), self.usage(place, fr)
        if parent is None:
            return self.subtree(place, fr) - used
        above, kept = self.available(parent, fr), self.guaranteed(place, fr)
        limit = self.borrowing_limit(place, fr)
        if limit is not None:
            above = min(above, self.subtree(place, fr) - kept - max(0, used - kept) + limit)
        return max(0, kept - used) + above

    def potential(self, place: Place, fr: FlavorResource) -> int:
        parent, subtree = self.parent(place), self.subtree(place, fr)
        if parent is None:
            return subtree
        most = self.guaranteed(place, fr) + self.potential(parent, fr)
        limit = self.borrowing_limit(place, fr)
        return most if limit is None else min(most, subtree + limit)

    def height(self, place: Place) -> int:
        return max((self.height(child) + 1 for child in self.children(place)), default=0)

    # Entries

    def nominal(self, place: Place, fr: FlavorResource) -> int:
        entry = self._listed[place].get(fr)
        return 0 if entry is None else entry.nominal

    def borrowing_limit(self, place: Place, fr: FlavorResource) -> int | None:
        entry = self._listed[place].get(fr)
        return None if entry is None else entry.borrowing_limit

    def lending_limit(self, place: Place, fr: FlavorResource) -> int | None:
        entry = self._listed[place].get(fr)
        return None if entry is None else entry.lending_limit

    def used_here(self, place: Place, fr: FlavorResource) -> int:
        is_queue = place.kind == "ClusterQueue"
        return self.charges.get(place.name, {}).get(fr, 0) if is_queue else 0


def holds(manifest: Manifest) -> bool:
    """Does this workload hold quota?"""
    status = status_of(manifest)
    reserved = is_true(status, "QuotaReserved") and bool(status.get("admission"))
    return reserved and not is_true(status, "Finished")


def charged_to(manifest: Manifest) -> str:
    """The ClusterQueue it holds quota of; empty if none."""
    return str(status_of(manifest)["admission"]["clusterQueue"]) if holds(manifest) else ""


def charge(manifest: Manifest) -> dict[FlavorResource, int]:
    """What it holds, pods that are done not counted."""
    usage: dict[FlavorResource, int] = {}
    if not holds(manifest):
        return usage
    done = {one["name"]: one["count"] for one in status_of(manifest).get("reclaimablePods") or ()}
    sizes = {one["name"]: one["count"] for one in spec_of(manifest)["podSets"]}
    for one in status_of(manifest)["admission"]["podSetAssignments"]:
        name, count = one["name"], one["count"]
        left = min(count, max(0, sizes[name] - done.get(name, 0)))
        for resource, text in one.get("resourceUsage", {}).items():
            fr = FlavorResource(one["flavors"][resource], resource)
            whole = amount(resource, text)
            part = whole if left == count else whole // count * left
            usage[fr] = usage.get(fr, 0) + part
    return usage


def _entries(manifest: Manifest) -> dict[FlavorResource, Entry]:
    return {
        FlavorResource(flavor["name"], item["name"]): Entry(
            nominal=amount(item["name"], item["nominalQuota"]),
            borrowing_limit=_limit(item, "borrowingLimit"),
            lending_limit=_limit(item, "lendingLimit"),
        )
        for group in spec_of(manifest).get("resourceGroups") or ()
        for flavor in group["flavors"]
        for item in flavor["resources"]
    }


def _limit(item: Manifest, which: str) -> int | None:
    return None if item.get(which) is None else amount(item["name"], item[which])


def _parent_name(manifest: Manifest) -> str | None:
    field = "cohortName" if manifest["kind"] == "ClusterQueue" else "parentName"
    return spec_of(manifest).get(field) or None


def _nothing(name: str) -> Manifest:
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": {}}

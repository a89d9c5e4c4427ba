"""Where do all pod sets of a workload go together?

Pod sets are placed one after the other, each seeing what the earlier ones took; a group of two is placed at once: its
leader is the smaller pod set, on a tie the second. If one finds no place, none has one. The answer changes nothing: the
places are taken on trial only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.placement.demand import Unplaceable
from app.core.placement.ledger import Occupation
from app.core.placement.misfit import Misfit
from app.core.placement.sites import Sites
from app.core.placement.wanted import Wanted, demand_of
from app.core.resources import PODS
from app.core.topology import TopologyAssignment

#: By pod set.
Placement = Mapping[str, TopologyAssignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How places are sought: as if nothing were admitted (`empty`), spread evenly, with a misfit explained or not."""

    empty: bool = False
    balanced: bool = False
    explain: bool = True


NOW = Terms()
BRIEFLY = Terms(explain=False)
EMPTY = Terms(empty=True)


def place(sites: Sites, wanted: Sequence[Wanted], terms: Terms = NOW) -> Placement | Misfit:
    """An assignment for every pod set, or the first misfit."""
    placed: dict[str, TopologyAssignment] = {}
    groups = _groups(wanted)
    with sites.trial():
        for number, members in enumerate(groups, start=1):
            found = _place_group(sites, members, terms)
            if isinstance(found, Misfit):
                return found
            placed |= found
            if number < len(groups):
                taken = [one.occupying(found[one.pod_set]) for one in members]
                sites.occupy(taken, empty=terms.empty)
    return placed


def has_room(sites: Sites, places: Sequence[Occupation]) -> bool:
    """Would all domains hold, together, what is to go there?"""
    if not places:
        return True
    with sites.trial():
        sites.occupy(places)
        return all(_has_left(sites, one, dict.fromkeys(dict(one.asked), 0)) for one in places)


def has_room_to_the_letter(sites: Sites, places: Iterable[Occupation]) -> bool:
    """The same as Kueue asks it: each pod set for itself, forgetting that a node has so many places for pods.

    So two pod sets may be let onto the same room, and pods that ask for nothing never find any.
    """
    for one in places:
        asked = {resource: amount for resource, amount in one.asked if resource != PODS}
        if not asked or not _has_left(sites, one, asked):
            return False
    return True


def _has_left(sites: Sites, place_: Occupation, per_pod: Mapping[str, int]) -> bool:
    """Is every domain there, with so much left for each of its pods?"""
    site = sites.site(place_.flavor)
    for values, count in place_.assignment.domains:
        leaf = None if site is None else site.leaf(values)
        if site is None or leaf is None:
            return False
        if any(site.now.room(leaf, r) < amount * count for r, amount in per_pod.items()):
            return False
    return True


def _groups(wanted: Sequence[Wanted]) -> list[list[Wanted]]:
    """In the order of the first of each; of a group of more than two every pod set is placed for itself."""
    groups: dict[str, list[Wanted]] = {}
    for position, one in enumerate(wanted):
        groups.setdefault(f"={one.group}" if one.group else f"#{position}", []).append(one)
    return [
        part
        for members in groups.values()
        for part in ([members] if len(members) <= 2 else [[one] for one in members])
    ]


def _place_group(sites: Sites, members: Sequence[Wanted], terms: Terms) -> Placement | Misfit:
    workers, leader = _roles(members)
    site = sites.site(workers.flavor)
    if site is None:
        return Misfit(f"no topology for flavor {workers.flavor}", workers.pod_set)
    flavor, levels = sites.flavors[workers.flavor], site.tree.levels
    try:
        demand = demand_of(workers, leader, flavor, levels, balanced=terms.balanced)
    except Unplaceable as refusal:
        return Misfit(str(refusal), workers.pod_set)
    plan = site.place(demand, empty=terms.empty, explain=terms.explain)
    if isinstance(plan, Misfit):
        return replace(plan, pod_set=members[0].pod_set)
    placed = {workers.pod_set: plan.workers}
    if leader is not None and plan.leader is not None:
        placed[leader.pod_set] = plan.leader
    return placed


def _roles(members: Sequence[Wanted]) -> tuple[Wanted, Wanted | None]:
    if len(members) == 1:
        return members[0], None
    first, second = members
    return (second, first) if second.count > first.count else (first, second)

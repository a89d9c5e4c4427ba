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
    with sites.trial():
        for members in _groups(wanted):
            found = _place_group(sites, members, terms)
            if isinstance(found, Misfit):
                return found
            placed |= found
            taken = [one.occupying(found[one.pod_set]) for one in members]
            sites.occupy(taken, empty=terms.empty)
    return placed


def has_room(sites: Sites, places: Iterable[Occupation]) -> bool:
    """Does every domain still hold what is to go there? Each pod set is asked for itself, as Kueue does."""
    for place_ in places:
        site = sites.site(place_.flavor)
        if site is None:
            return False
        for values, count in place_.assignment.domains:
            leaf = site.leaf(values)
            if leaf is None or any(
                site.now.room(leaf, resource) < amount * count for resource, amount in place_.asked
            ):
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

"""What does a workload want of the nodes, where would it go, and what does it hold there?

The bridge between flavors and places. Once flavors are chosen, every pod set that asks for a topology - or that may
take nothing else, where all flavors of its queue have one - wants places on the nodes of its flavor. As in Kueue's
flavorassigner.go: if the quota fits, places are sought now, and none found means that somebody would have to be
preempted; if somebody would, places are sought as if nothing were admitted, and none found means that the workload can
never fit. What was found is part of the assignment, and of the room that the assignment takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.decisions import FlavorFact, PendingReason
from app.core.flavors import Assignment, PodSetChoice
from app.core.fungibility import Mode, Standing
from app.core.model import ClusterQueue, PodSet, ResourceFlavor, Workload
from app.core.placement.gang import EMPTY, Placement, place
from app.core.placement.ledger import Occupation
from app.core.placement.misfit import Misfit
from app.core.placement.sites import Sites
from app.core.placement.wanted import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Placer:
    """Seeks places for one workload of one queue."""

    sites: Sites
    queue: ClusterQueue
    workload: Workload

    def placed(self, assignment: Assignment) -> Assignment:
        """The assignment with places, or with the mode that a lack of them leaves."""
        if assignment.mode is Mode.NO_FIT:
            return assignment
        wanted = self.wanted(assignment)
        if isinstance(wanted, FlavorFact):
            return _failed(assignment, wanted, Mode.NO_FIT)
        if not wanted:
            return assignment
        if assignment.mode is Mode.FIT:
            found = place(self.sites, wanted)
            if not isinstance(found, Misfit):
                return _with_places(assignment, wanted, found)
            fact = _fact(assignment, wanted, found, PendingReason.WAITING_FOR_QUOTA)
            assignment = _failed(assignment, fact, Mode.PREEMPT)
        found = place(self.sites, wanted, EMPTY)
        if isinstance(found, Misfit):
            fact = _fact(assignment, wanted, found, PendingReason.TOPOLOGY_PLACEMENT_FAILED)
            return _failed(assignment, fact, Mode.NO_FIT)
        return _all_preempting(assignment, {one.pod_set for one in wanted})

    def pods(self, assignment: Assignment) -> tuple[Wanted, ...]:
        """The places it wants, of an assignment that may still fit."""
        wanted = self.wanted(assignment)
        return () if isinstance(wanted, FlavorFact) else wanted

    def held_for(self, assignment: Assignment, *, empty: bool) -> Assignment:
        """With the places it would get now, or as if nothing were admitted, whatever its mode."""
        wanted = self.pods(assignment)
        if not wanted:
            return assignment
        found = place(self.sites, wanted, EMPTY) if empty else place(self.sites, wanted)
        return assignment if isinstance(found, Misfit) else _with_places(assignment, wanted, found)

    def wanted(self, assignment: Assignment) -> tuple[Wanted, ...] | FlavorFact:
        """Places for every pod set that needs them; a fact where one has not exactly one flavor to seek them in."""
        asked = any(one.topology is not None for one in self.workload.pod_sets)
        if not asked and not self.sites.topologies:
            return ()
        implied = has_only_topologies(self.queue, self.sites.flavors)
        pod_sets = {one.name: one for one in self.workload.pod_sets}
        wanted: list[Wanted] = []
        for choice in assignment.pod_sets:
            pod_set = pod_sets[choice.name]
            if not (implied or (pod_set.topology is not None and pod_set.topology.is_explicit)):
                continue
            flavors = _flavors_with_topology(
                (one.flavor for one in choice.choices.values()), self.sites.flavors
            )
            if len(flavors) != 1:
                return _no_one_flavor(choice, flavors)
            wanted.append(_wanted(pod_set, choice.count, flavors[0]))
        return tuple(wanted)


def has_only_topologies(queue: ClusterQueue, flavors: Mapping[str, ResourceFlavor]) -> bool:
    """Do all flavors of a queue have a topology?"""
    names = [name for group in queue.groups for name in group.flavors]
    return bool(names) and all(
        name in flavors and flavors[name].topology_name is not None for name in names
    )


def held_places(
    workload: Workload, flavors: Mapping[str, ResourceFlavor]
) -> tuple[Occupation, ...]:
    """The places that a workload's admission gives it. Pods that are done keep theirs until it has finished."""
    if workload.admission is None:
        return ()
    pod_sets = {one.name: one for one in workload.pod_sets}
    return tuple(
        _wanted(pod_sets[one.name], one.count, name).occupying(one.topology)
        for one in workload.admission.pod_sets
        if one.topology is not None and one.name in pod_sets
        for name in _flavors_with_topology(one.flavors.values(), flavors)[:1]
    )


def _flavors_with_topology(
    names: Iterable[str], flavors: Mapping[str, ResourceFlavor]
) -> Sequence[str]:
    known = (flavors.get(name) for name in dict.fromkeys(names))
    return [one.name for one in known if one is not None and one.topology_name is not None]


def _wanted(pod_set: PodSet, count: int, flavor: str) -> Wanted:
    return Wanted(
        pod_set=pod_set.name,
        flavor=flavor,
        count=count,
        shape=pod_set.shape,
        request=pod_set.topology,
        group=pod_set.group,
    )


def _with_places(assignment: Assignment, wanted: Sequence[Wanted], found: Placement) -> Assignment:
    places = tuple(one.occupying(found[one.pod_set]) for one in wanted)
    return replace(assignment, placement=found, places=places)


def _all_preempting(assignment: Assignment, names: Iterable[str]) -> Assignment:
    """Room may be in pieces where the quota fits: all that wants places needs preemption."""
    chosen = set(names)
    pod_sets = tuple(
        _in_mode(one, Mode.PREEMPT) if one.name in chosen else one for one in assignment.pod_sets
    )
    return replace(assignment, pod_sets=pod_sets)


def _failed(assignment: Assignment, fact: FlavorFact, mode: Mode) -> Assignment:
    """One pod set found no places: it gets that mode, and so does the whole."""
    pod_sets = tuple(
        replace(_in_mode(one, mode), facts=_explained(one.facts, fact))
        if one.name == fact.pod_set
        else one
        for one in assignment.pod_sets
    )
    return replace(assignment, pod_sets=pod_sets, mode=mode)


def _explained(facts: Sequence[FlavorFact], fact: FlavorFact) -> tuple[FlavorFact, ...]:
    """What was said of that flavor before is said for the new reason now."""
    return (
        *(replace(one, reason=fact.reason) if one.flavor == fact.flavor else one for one in facts),
        fact,
    )


def _in_mode(one: PodSetChoice, mode: Mode) -> PodSetChoice:
    choices = {
        resource: replace(choice, standing=Standing(mode, choice.standing.height))
        for resource, choice in one.choices.items()
    }
    return replace(one, choices=choices, mode=min(one.mode, mode))


def _fact(
    assignment: Assignment, wanted: Sequence[Wanted], misfit: Misfit, reason: PendingReason
) -> FlavorFact:
    flavor = next(one.flavor for one in wanted if one.pod_set == misfit.pod_set)
    choice = next(one for one in assignment.pod_sets if one.name == misfit.pod_set)
    resource = min(r for r, one in choice.choices.items() if one.flavor == flavor)
    return FlavorFact(
        pod_set=misfit.pod_set,
        flavor=flavor,
        resource=resource,
        asked=choice.requests.get(resource, 0),
        reason=reason,
        message=misfit.message,
    )


def _no_one_flavor(choice: PodSetChoice, flavors: Sequence[str]) -> FlavorFact:
    several = f"more than one flavor assigned: {', '.join(sorted(flavors))}"
    return FlavorFact(
        pod_set=choice.name,
        flavor="",
        resource=min(choice.choices, default=""),
        asked=0,
        reason=PendingReason.NO_MATCHING_FLAVOR,
        message=several if flavors else "no flavor assigned",
    )

"""Which flavors should a workload get, and does it then fit, fit after preemptions, or not at all?

Theory of operation, after Kueue's flavorassigner.go. Pod sets are taken in order (those of one group together), and
for each the resource groups of the queue: the flavors of a group are tried in the queue's order and judged resource
by resource. A judgement is a *mode* - fits, would fit by reclaiming, by preempting, no candidates, no fit - and the
*height* of the cohort whose quota it borrows; a flavor is as good as its worst resource. The queue's fungibility says
when the first acceptable flavor ends the scan; otherwise the best one is taken. Where the scan ended is remembered as
a cursor, so that the next attempt goes on behind it.

What earlier pod sets of the same workload take counts as taken. Whether preemption could help is asked of an
``Oracle``, so this module knows nothing of victims. Affinity and selectors are judged on a flavor's own labels only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from app.core.decisions import Cursor, FlavorFact, PendingReason
from app.core.fungibility import Mode, Standing, is_preferred, may_stop, worst
from app.core.matching import objection, topology_objection
from app.core.model import (
    ClusterQueue,
    PodSet,
    PodSetAdmission,
    ResourceFlavor,
    ResourceGroup,
)
from app.core.node import Node
from app.core.placement.ledger import Occupation
from app.core.requests import PodSetRequest
from app.core.resources import PODS, FlavorResource, Requests, plus, total, written
from app.core.topology import TopologyAssignment

#: Could preemption make room for this much of one flavor and resource?
Oracle = Callable[[FlavorResource, int], Standing]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    flavor: str
    standing: Standing
    tried: int  # index of the flavor looked at last; -1: all were


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetChoice:
    """The flavors of one pod set; `facts` is what spoke against flavors on the way."""

    name: str
    count: int
    requests: Requests
    choices: Mapping[str, Choice] = field(default_factory=dict)
    facts: tuple[FlavorFact, ...] = ()
    mode: Mode = Mode.FIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A choice of flavors for every pod set, up to the first one that found none."""

    pod_sets: tuple[PodSetChoice, ...]
    usage: Mapping[FlavorResource, int]
    mode: Mode
    height: int  # 0: within the queue's own quota
    placement: Mapping[str, TopologyAssignment] = field(default_factory=dict)  # by pod set
    places: tuple[Occupation, ...] = ()  # what that placement takes of the nodes

    @property
    def cursor(self) -> Cursor:
        return tuple(
            tuple(sorted((resource, choice.tried) for resource, choice in one.choices.items()))
            for one in self.pod_sets
        )

    def needing_preemption(self) -> frozenset[FlavorResource]:
        return frozenset(
            FlavorResource(choice.flavor, resource)
            for one in self.pod_sets
            for resource, choice in one.choices.items()
            if choice.standing.mode.needs_preemption
        )

    def admitted_pod_sets(self) -> tuple[PodSetAdmission, ...]:
        return tuple(
            PodSetAdmission(
                name=one.name,
                count=one.count,
                flavors={resource: choice.flavor for resource, choice in one.choices.items()},
                usage={resource: one.requests.get(resource, 0) for resource in one.choices},
                topology=self.placement.get(one.name),
            )
            for one in self.pod_sets
        )


#: Flavors that an earlier nomination chose, by pod set and resource: a recomputation keeps to them.
Pins = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """What an assignment may look at besides the request itself."""

    queue: ClusterQueue
    node: Node
    flavors: Mapping[str, ResourceFlavor]
    oracle: Oracle
    levels: Callable[[str], Sequence[str]] = lambda _: ()  # of the topology of a flavor
    can_preempt_while_borrowing: bool = False
    implied: bool = False  # all flavors of the queue have a topology: pods need not ask for one


def assign(
    market: Market,
    requests: Sequence[PodSetRequest],
    cursor: Cursor = (),
    pins: Pins | None = None,
) -> Assignment:
    """Choose flavors for all pod sets, going on where `cursor` stopped."""
    usage: dict[FlavorResource, int] = {}
    done: dict[int, PodSetChoice] = {}
    wanted = [_with_pods(market.queue, request) for request in requests]
    for places in _groups_of(requests):
        scan = _Scan(market=market, usage=usage, pins=pins)
        chosen = scan.group(
            [requests[i] for i in places], [wanted[i] for i in places], _at(cursor, places[0])
        )
        for place, one in zip(places, chosen, strict=True):
            done[place] = one
            for resource, choice in one.choices.items():
                fr = FlavorResource(choice.flavor, resource)
                usage[fr] = plus(usage.get(fr, 0), one.requests.get(resource, 0))
        if any(one.mode is Mode.NO_FIT for one in chosen):
            break
    if not market.queue.groups and any(request.count for request in requests):
        done = {}  # a queue without any quota runs nothing, not even what asks for nothing
    pod_sets = tuple(done[place] for place in sorted(done))
    standings = [choice.standing for one in pod_sets for choice in one.choices.values()]
    return Assignment(
        pod_sets=pod_sets,
        usage=usage,
        mode=min((one.mode for one in pod_sets), default=Mode.NO_FIT),
        height=max((standing.height for standing in standings), default=0),
    )


def _with_pods(queue: ClusterQueue, request: PodSetRequest) -> Requests:
    if PODS not in queue.covering:
        return request.requests
    return {**request.requests, PODS: request.count}


def _groups_of(requests: Sequence[PodSetRequest]) -> list[list[int]]:
    """Places of pod sets that share their flavors, in the order of the first of each."""
    groups: dict[str, list[int]] = {}
    for place, request in enumerate(requests):
        groups.setdefault(request.pod_set.group or f"#{place}", []).append(place)
    return list(groups.values())


def _at(cursor: Cursor, place: int) -> Mapping[str, int]:
    return dict(cursor[place]) if place < len(cursor) else {}


@dataclass(slots=True, kw_only=True)
class _Scan:
    """The scan over the flavors of one group of pod sets."""

    market: Market
    usage: Mapping[FlavorResource, int]  # what earlier pod sets take
    pins: Pins | None
    facts: list[FlavorFact] = field(default_factory=list)

    def group(
        self,
        requests: Sequence[PodSetRequest],
        wanted: Sequence[Requests],
        cursor: Mapping[str, int],
    ) -> list[PodSetChoice]:
        pod_sets = [request.pod_set for request in requests]
        found = self._flavors_of(pod_sets, total(*wanted), cursor)
        choices, mode = found if found is not None else ({}, Mode.NO_FIT)
        return [
            PodSetChoice(
                name=request.pod_set.name,
                count=request.count,
                requests=asked,
                choices=self._share(request.pod_set, asked, choices),
                facts=() if mode is Mode.FIT else tuple(self.facts),
                mode=mode,
            )
            for request, asked in zip(requests, wanted, strict=True)
        ]

    def _share(
        self, pod_set: PodSet, asked: Requests, choices: Mapping[str, Choice]
    ) -> Mapping[str, Choice]:
        """The choices for what it asks for; one that asks for nothing is placed with its group all the same."""
        if asked or pod_set.group is None:
            return {r: choices[r] for r in sorted(asked) if r in choices}
        return {r: one for r, one in choices.items() if self.market.levels(one.flavor)}

    def _flavors_of(
        self, pod_sets: Sequence[PodSet], wanted: Requests, cursor: Mapping[str, int]
    ) -> tuple[dict[str, Choice], Mode] | None:
        """A flavor from each resource group that is asked for; None as soon as one has none to give."""
        choices: dict[str, Choice] = {}
        fits = True
        for resource in sorted(wanted, reverse=True):
            group = self.market.queue.covering.get(resource)
            if resource in choices or (group is None and wanted[resource] == 0):
                continue
            if group is None:
                self._unavailable(pod_sets[0].name, resource, wanted[resource])
                return None
            mine = {r: v for r, v in sorted(wanted.items()) if r in group.resources}
            best = self._best(pod_sets, group, mine, start=cursor.get(resource, -1) + 1)
            if best is None:
                return None
            fits = fits and best[0].mode is Mode.FIT
            choices.update(best[1])
        modes = [choice.standing.mode for choice in choices.values()]
        return choices, Mode.FIT if fits else min(modes)

    def _best(
        self, pod_sets: Sequence[PodSet], group: ResourceGroup, wanted: Requests, start: int
    ) -> tuple[Standing, dict[str, Choice]] | None:
        """The flavor of a resource group to take and what it is worth; None when all are hopeless."""
        rules, name = self.market.queue.fungibility, pod_sets[0].name
        best: tuple[Standing, str, Mapping[str, Standing]] | None = None
        last = start
        for last in range(start, len(group.flavors)):
            flavor = group.flavors[last]
            if self._is_pinned_elsewhere(name, wanted, flavor):
                continue
            if not self._suits(pod_sets, flavor, wanted):
                continue
            standings = self._judge(name, flavor, wanted)
            worth = worst(standings.values(), rules)
            stops = may_stop(worth, rules)
            if stops or best is None or is_preferred(worth, best[0], rules):
                best = (worth, flavor, standings)
            if stops:
                break
        if best is None or best[0].mode is Mode.NO_FIT:
            return None
        tried = -1 if last >= len(group.flavors) - 1 else last
        worth, flavor, standings = best
        return worth, {
            resource: Choice(flavor=flavor, standing=standing, tried=tried)
            for resource, standing in standings.items()
        }

    def _judge(self, name: str, flavor: str, wanted: Requests) -> Mapping[str, Standing]:
        """The standing of every resource. Once one is hopeless, preemption is not asked about any more."""
        standings: dict[str, Standing] = {}
        hopeless = False
        for resource, asked in wanted.items():
            fr = FlavorResource(flavor, resource)
            found = self._standing(name, fr, asked, hopeless=hopeless)
            hopeless = hopeless or found.mode is Mode.NO_FIT
            standings[resource] = found
        return standings

    def _standing(self, name: str, fr: FlavorResource, asked: int, *, hopeless: bool) -> Standing:
        node = self.market.node
        before = self.usage.get(fr, 0)
        value, limit = plus(before, asked), node.potential(fr)
        if value > limit:
            message = _too_large(fr, before, asked, limit)
            self._note(name, fr, value, PendingReason.EXCEEDS_MAX_QUOTA, message)
            return Standing(Mode.NO_FIT)
        height, may_reclaim = node.borrow_height(fr, value)
        available = node.available(fr)
        if value <= available:
            return Standing(Mode.FIT, height)
        self._note(
            name, fr, value, PendingReason.WAITING_FOR_QUOTA, _too_little(fr, value - available)
        )
        within_nominal = value <= node.quota(fr).nominal
        may_preempt = within_nominal or may_reclaim or self.market.can_preempt_while_borrowing
        if may_preempt and not hopeless:
            return self.market.oracle(fr, value)
        return Standing(Mode.NO_FIT, height)

    def _suits(self, pod_sets: Sequence[PodSet], flavor: str, wanted: Requests) -> bool:
        against = self._objection(pod_sets, flavor)
        if against is None:
            return True
        for resource in wanted:
            fr = FlavorResource(flavor, resource)
            self.facts.append(
                FlavorFact(
                    pod_set=pod_sets[0].name,
                    flavor=flavor,
                    resource=resource,
                    asked=wanted[resource],
                    available=self.market.node.available(fr),
                    limit=self.market.node.potential(fr),
                    reason=PendingReason.NO_MATCHING_FLAVOR,
                    message=against,
                )
            )
        return False

    def _objection(self, pod_sets: Sequence[PodSet], name: str) -> str | None:
        """What speaks against a flavor: its topology, its taints, its labels; the first pod set that minds counts."""
        flavor = self.market.flavors.get(name)
        for pod_set in pod_sets:
            against = topology_objection(
                flavor, self.market.levels(name), pod_set, implied=self.market.implied
            ) or objection(name, flavor, [pod_set.shape])
            if against is not None:
                return against
        return None

    def _is_pinned_elsewhere(self, name: str, wanted: Requests, flavor: str) -> bool:
        if self.pins is None:
            return False
        return any(self.pins.get((name, resource), flavor) != flavor for resource in wanted)

    def _note(
        self, name: str, fr: FlavorResource, value: int, reason: PendingReason, message: str
    ) -> None:
        node = self.market.node
        self.facts.append(
            FlavorFact(
                pod_set=name,
                flavor=fr.flavor,
                resource=fr.resource,
                asked=value,
                available=node.available(fr),
                limit=node.potential(fr),
                reason=reason,
                message=message,
                blocked_by=node.blocker(fr, value).name,
            )
        )

    def _unavailable(self, name: str, resource: str, asked: int) -> None:
        self.facts.append(
            FlavorFact(
                pod_set=name,
                flavor="",
                resource=resource,
                asked=asked,
                reason=PendingReason.NO_MATCHING_FLAVOR,
                message=f"resource {resource} unavailable in ClusterQueue",
            )
        )


def _too_large(fr: FlavorResource, before: int, asked: int, limit: int) -> str:
    return (
        f"insufficient quota for {fr.resource} in flavor {fr.flavor}, previously considered podsets "
        f"requests ({written(fr.resource, before)}) + current podset request "
        f"({written(fr.resource, asked)}) > maximum capacity ({written(fr.resource, limit)})"
    )


def _too_little(fr: FlavorResource, missing: int) -> str:
    return (
        f"insufficient unused quota for {fr.resource} in flavor {fr.flavor}, "
        f"{written(fr.resource, missing)} more needed"
    )

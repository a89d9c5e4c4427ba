"""May this head run, on which flavors, and whom would it preempt?

The second step of a cycle, for one workload. A head that may not run whatever the quota is turned away with a reason;
for the others flavors are assigned, going on where an earlier scan stopped while that still makes sense, and victims
are sought when room is lacking. If the whole gang finds neither, a smaller one is tried where its pod sets allow it.

The oracle that flavor assignment consults is a full search for victims, for one flavor and resource alone.

A blocked head is nominated again every cycle, mostly under the very same circumstances: the last nomination of a
queue is remembered with them, and given again while workload, cursor, objects and the version of the tree are equal.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from app.core import explain, fair_preemption, partial, preemption
from app.core.decisions import Cursor, Explanation, PendingReason, Requeue
from app.core.flavors import Market, Pins, assign
from app.core.fungibility import Mode, Standing
from app.core.image import Image
from app.core.model import ClusterQueue, PreemptionPolicy, Workload
from app.core.node import Node
from app.core.ordering import equivalence_key
from app.core.placement.wanted import Wanted
from app.core.placing import Placer, has_only_topologies
from app.core.policy import Policy
from app.core.proposal import Nomination
from app.core.requests import PodSetRequest, asked, declared
from app.core.resources import FlavorResource, Usage
from app.core.rivals import once_more
from app.core.victims import RoomWanted, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Turned away before quota was even looked at."""

    explanation: Explanation
    requeue: Requeue = Requeue.GENERIC


def why_not(image: Image, queue: ClusterQueue, workload: Workload) -> Rejection | None:
    """What keeps a head from being considered at all."""
    if workload.blocked_checks:
        return _rejected(
            PendingReason.PENDING_EVALUATION,
            f"The workload has failed admission checks: {', '.join(workload.blocked_checks)}",
        )
    if not image.admits_namespace(queue, workload.namespace):
        return Rejection(
            explanation=explain.simply(PendingReason.MISCONFIGURED, explain.NAMESPACE_MISMATCH),
            requeue=Requeue.NAMESPACE_MISMATCH,
        )
    faults = [one.shape.fault for one in workload.pod_sets if one.shape.fault]
    if faults:
        return _rejected(PendingReason.MISCONFIGURED, f"resources validation failed: {faults[0]}")
    return None


def is_blocked(image: Image, policy: Policy) -> bool:
    """May nobody start because somebody who holds quota is not ready?"""
    patience = policy.pods_ready
    return patience is not None and patience.block_admission and bool(image.unready)


def _rejected(reason: PendingReason, message: str) -> Rejection:
    return Rejection(explanation=explain.simply(reason, message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nominator:
    """Nominates one workload; `spared` are victims of others, which count as gone already."""

    image: Image
    policy: Policy
    queue: ClusterQueue
    node: Node
    workload: Workload
    spared: Collection[str] = field(default_factory=frozenset)

    def nominate(self) -> Nomination:
        """Flavors and victims for the whole gang, or for the largest part of it that may run alone."""
        cursor = self._cursor()
        image = self.image
        circumstances = (
            self.workload,
            self.policy,
            cursor,
            image.edits,
            self._version,
            self._spent,
        )
        known = self.image.nominations.get(self.queue.name)
        if known is not None and known[0] == circumstances:
            return known[1]
        nomination = self._nominate(cursor)
        self.image.nominations[self.queue.name] = (circumstances, nomination)
        return nomination

    @property
    def _version(self) -> tuple[int, int]:
        return self.node.root.version, self.image.sites.version

    @property
    def _spent(self) -> tuple[str, ...]:
        """Those who were preempted for it often enough."""
        if not self.policy.break_loops:
            return ()
        return self.image.rivals.spent(self.workload.uid, self.node.root.name, self.image.edits)

    def again(self, pins: Pins) -> Nomination:
        """A new proposal with the flavors chosen before, because circumstances changed within a cycle."""
        return self._nominate((), pins)

    def _nominate(self, cursor: Cursor, pins: Pins | None = None) -> Nomination:
        whole = self.propose(cursor=cursor, pins=pins)
        if whole.is_admissible:
            return whole
        if self.policy.partial_admission:
            reduced = partial.largest(
                self.workload, lambda counts: self.propose(counts, cursor, pins), _is_good
            )
            if reduced is not None:
                return reduced
        return replace(whole, why=self.why(whole))

    def why(self, nomination: Nomination) -> Explanation:
        """Why it is not admissible; also which victims it may not have once more."""
        why = explain.explain(nomination.assignment, self.queue)
        spent = self._spent
        if not spent:
            return why
        held = (one.get(uid) for one in self.image.holdings.values() for uid in spent)
        back = sorted(one.workload.key for one in held if one and one.workload.evicted is None)
        return replace(why, message=why.message + once_more(back)) if back else why

    def propose(
        self, counts: tuple[int, ...] | None = None, cursor: Cursor = (), pins: Pins | None = None
    ) -> Nomination:
        placer = Placer(sites=self.image.sites, queue=self.queue, workload=self.workload)
        wanted = self._asked(counts)
        assignment = placer.placed(assign(self._market(), wanted, cursor, pins))
        needed = assignment.needing_preemption()
        if not assignment.mode.needs_preemption or not needed:
            return Nomination(assignment=assignment)
        targets = self._targets(assignment.usage, needed, placer.pods(assignment))
        with self.image.books.trial():
            self.image.books.remove_all(target.holding for target in targets)
            assignment = placer.held_for(assignment, empty=not targets)
        return Nomination(assignment=assignment, targets=tuple(targets))

    def _asked(self, counts: tuple[int, ...] | None) -> tuple[PodSetRequest, ...]:
        rules = self.policy.accounting
        wanted = asked(self.workload, counts, rules)
        return declared(wanted, self.queue) if rules.ignore_undeclared else wanted

    def _market(self) -> Market:
        return Market(
            queue=self.queue,
            node=self.node,
            flavors=self.image.flavors,
            levels=self.image.sites.levels,
            implied=has_only_topologies(self.queue, self.image.flavors),
            oracle=self._could_preempt,
            can_preempt_while_borrowing=self._can_preempt_while_borrowing(),
        )

    def _can_preempt_while_borrowing(self) -> bool:
        rules = self.queue.preemption
        never = PreemptionPolicy.NEVER
        reclaims_fairly = self.policy.fair_sharing is not None
        return rules.borrow_within_cohort is not never or (
            reclaims_fairly and rules.reclaim_within_cohort is not never
        )

    def _could_preempt(self, fr: FlavorResource, value: int) -> Standing:
        targets = self._targets({fr: value}, frozenset({fr}))
        if not targets:
            return Standing(Mode.NO_CANDIDATES, self.node.borrow_height(fr, value)[0])
        with self.image.books.trial():
            self.image.books.remove_all(target.holding for target in targets)
            height, _ = self.node.borrow_height(fr, value)
        own = any(target.holding.cluster_queue == self.queue.name for target in targets)
        return Standing(Mode.PREEMPT if own else Mode.RECLAIM, height)

    def _targets(
        self, usage: Usage, needed: frozenset[FlavorResource], pods: tuple[Wanted, ...] = ()
    ) -> list[Target]:
        wanted = RoomWanted(
            workload=self.workload,
            queue=self.queue,
            node=self.node,
            usage=usage,
            needed=needed,
            books=self.image.books,
            holdings=self.image.holdings,
            pods=pods,
            spared=self.spared,
            spent=self._spent,
            rank=self.image.rank_in(self.queue.name),
        )
        if self.policy.fair_sharing is not None:
            return fair_preemption.find_targets(wanted, self.policy.fair_sharing)
        return preemption.find_targets(wanted)

    def _cursor(self) -> Cursor:
        """Where to go on. A scan interrupted long ago starts anew once room appeared in its tree."""
        progress = self.image.progress(self.workload)
        if progress is None or progress.equivalence != equivalence_key(self.workload):
            return ()
        is_recent = progress.cycle >= self.image.cycles
        is_current = progress.generation == self.node.current_generation
        return progress.cursor if is_recent or is_current else ()


def _is_good(nomination: Nomination) -> bool:
    return nomination.is_admissible

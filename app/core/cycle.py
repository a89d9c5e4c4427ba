"""One scheduling cycle: what should happen next?

Theory of operation. `schedule` looks at the image, decides, and changes nothing: all usage it moves lives in a trial
of the quota tree that is rolled back. The steps, as in Kueue's scheduler.go:

1. *Heads.* The next workload of every queue that is served.
2. *Nominate.* For each: may it run here at all, which flavors, whom to preempt.
3. *Order.* Who goes first among the heads: by borrowing, priority and age, or by fair shares.
4. *Process.* One after the other, each seeing the room that those before it took: admit, preempt, or wait.
5. *Conclude.* Decisions in the order they were made; whoever waits goes back with its reason.

Preempt now, admit later: a preemptor is admitted by a later cycle, once its victims have really stopped. Its usage
counts for the rest of this cycle already, so nobody takes the room that is being made. The caller commits the result
and then tells the image with ``Image.finish_cycle``. Equal ranks end in the uid, where Kueue leaves them to chance.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from app.core import explain
from app.core.decisions import (
    Admit,
    Cursor,
    CycleResult,
    Explanation,
    Pending,
    PendingReason,
    Preempt,
    Requeue,
)
from app.core.fungibility import Mode
from app.core.image import Image
from app.core.model import Admission, ClusterQueue, PreemptionPolicy, Workload
from app.core.node import Node
from app.core.nomination import Nominator, Rejection, is_blocked, why_not
from app.core.ordering import queue_key
from app.core.placement.gang import has_room, has_room_to_the_letter
from app.core.placement.ledger import Occupation
from app.core.policy import Policy
from app.core.proposal import Nomination
from app.core.resources import FlavorResource, Usage
from app.core.tournament import fair_order
from app.core.victims import Target


def schedule(image: Image, policy: Policy, now: datetime) -> CycleResult:
    """Decide about the heads of all queues; an empty result means there were none."""
    heads = image.heads()  # 1.
    if not heads:
        return CycleResult(at=now)
    cycle = _Cycle(image=image, policy=policy)
    with image.books.trial():
        entries = [entry for head in heads if (entry := cycle.nominate(head))]  # 2.
        for entry in cycle.in_turn(entries):  # 3.
            cycle.process(entry)  # 4.
    return CycleResult(  # 5.
        at=now,
        admissions=tuple(cycle.admissions),
        preemptions=tuple(cycle.preemptions),
        pending=tuple(cycle.pending),
        heads={head.uid: head for head in heads},
        wakes={one.cluster_queue: image.wakes(one.cluster_queue) for one in cycle.pending},
    )


@dataclass(slots=True, kw_only=True)
class Entry:
    """A nominated head on its way through the cycle."""

    workload: Workload
    queue: ClusterQueue
    node: Node
    nomination: Nomination
    deferred: bool = False  # fits only behind the victims of others

    @property
    def usage(self) -> Usage:
        return self.nomination.assignment.usage

    @property
    def mode(self) -> Mode:
        return self.nomination.assignment.mode

    @property
    def targets(self) -> tuple[Target, ...]:
        return self.nomination.targets

    @property
    def places(self) -> tuple[Occupation, ...]:
        return self.nomination.assignment.places

    def has_quota(self) -> bool:
        return all(value <= self.node.available(fr) for fr, value in self.usage.items())


def _ordered(entries: list[Entry], policy: Policy) -> Iterable[Entry]:
    """Classical: lower borrow height, then as in a queue. Fair: a tournament, replayed after every entry."""
    if policy.fair_sharing is not None:
        return fair_order(entries)
    return sorted(
        entries,
        key=lambda one: (one.nomination.assignment.height, *queue_key(one.workload)),
    )


@dataclass(slots=True, kw_only=True)
class _Cycle:
    """The decisions so far, and the victims that count as gone for those who come later."""

    image: Image
    policy: Policy
    admissions: list[Admit] = field(default_factory=list)
    preemptions: list[Preempt] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    victims: dict[str, Target] = field(default_factory=dict)  # by uid
    preemptors: list[Entry] = field(default_factory=list)  # they count, though nothing is free yet

    def in_turn(self, entries: list[Entry]) -> Iterable[Entry]:
        """Step 3."""
        order = _ordered(entries, self.policy)
        if not self.policy.break_loops:
            return order
        return self.image.rivals.in_turn(entries, order, self.image.edits)

    def nominate(self, workload: Workload) -> Entry | None:
        """Step 2 for one head; None when it was turned away."""
        queue = self.image.queue_of(workload)
        node = self.image.tree.queue(queue.name) if queue is not None else None
        if queue is None or node is None:
            return None
        rejection = why_not(self.image, queue, workload)
        if rejection is not None:
            self._turn_away(workload, node, rejection)
            return None
        nomination = self._nominator(workload, queue, node).nominate()
        return Entry(workload=workload, queue=queue, node=node, nomination=nomination)

    def process(self, entry: Entry) -> None:
        """Step 4 for one entry. The order of the questions matters."""
        self._reconsider(entry)
        if entry.mode is Mode.NO_FIT:
            self._wait(entry, self._explanation(entry), Requeue.NO_FIT, keep_cursor=True)
        elif entry.mode.needs_preemption and not entry.targets:
            self._reserve(entry)
            self._wait(entry, self._explanation(entry), Requeue.NO_CANDIDATES, keep_cursor=True)
        elif entry.targets and entry.workload.preemption_gated:
            self._wait(entry, self._explanation(entry), Requeue.PREEMPTION_GATED)
        elif entry.deferred:
            self._take(entry)
            self._wait(entry, explain.waiting_for_others(), Requeue.PENDING_PREEMPTION)
        elif self._overlaps(entry):
            self._skip(entry, explain.OVERLAPPING_TARGETS)
        elif not self._fits(entry):
            self._skip(entry, explain.NO_LONGER_FITS)
        else:
            self._take(entry)
            self._preempt(entry) if entry.targets else self._start(entry)

    def _reconsider(self, entry: Entry) -> None:
        """Look again at the same flavors, where the places found are taken meanwhile, or others preempt its targets.

        These count as gone then, and what fits still has to wait for them.
        """
        if not (self._overlaps(entry) or self._lost_its_places(entry)):
            return
        pins = {
            (one.name, resource): choice.flavor
            for one in entry.nomination.assignment.pod_sets
            for resource, choice in one.choices.items()
        }
        overlaps = self._overlaps(entry)
        spared = self.victims if overlaps else ()
        with self.image.books.trial():
            self._remove(self._victims_near(entry) if overlaps else ())
            nominator = self._nominator(entry.workload, entry.queue, entry.node, spared)
            entry.nomination = nominator.again(pins)
        entry.deferred = overlaps and entry.mode is Mode.FIT

    def _lost_its_places(self, entry: Entry) -> bool:
        """Is there quota for it, with its own and all earlier victims gone, but no room where its pods were to go?"""
        if not entry.places:
            return False
        with self.image.books.trial():
            self._remove([*self._victims_near(entry), *entry.targets])
            return entry.has_quota() and not self._has_places(entry)

    def _has_places(self, entry: Entry) -> bool:
        if self.image.to_the_letter:
            return has_room_to_the_letter(self.image.sites, entry.places)
        return has_room(self.image.sites, entry.places)

    def _has_room(self, entry: Entry) -> bool:
        return entry.has_quota() and self._has_places(entry)

    def _overlaps(self, entry: Entry) -> bool:
        return any(one.holding.workload.uid in self.victims for one in entry.targets)

    def _fits(self, entry: Entry) -> bool:
        """With the victims so far and its own gone, is there room for it?"""
        leaving = [*self._victims_near(entry), *entry.targets]
        if not leaving:
            return self._has_room(entry)
        with self.image.books.trial():
            self._remove(leaving)
            if not self._has_room(entry):
                return False
        if entry.targets or not self.policy.never_overbook:
            return True
        return self._has_room_already(entry)

    def _has_room_already(self, entry: Entry) -> bool:
        """Is there room before any victim has stopped?"""
        with self.image.books.trial():
            for other in self._preemptors_near(entry):
                self.image.books.charge(other.queue.name, other.usage, other.places, -1)
            return self._has_room(entry)

    def _preemptors_near(self, entry: Entry) -> list[Entry]:
        """Those of the same tree; other trees share no quota."""
        return [other for other in self.preemptors if other.node.root is entry.node.root]

    def _victims_near(self, entry: Entry) -> list[Target]:
        return [target for other in self._preemptors_near(entry) for target in other.targets]

    def _remove(self, targets: Iterable[Target]) -> None:
        self.image.books.remove_all(target.holding for target in targets)

    def _take(self, entry: Entry) -> None:
        self.image.books.charge(entry.queue.name, entry.usage, entry.places)

    def _reserve(self, entry: Entry) -> None:
        """Hold what is free for a workload whose victims do not suffice, unless its queue can always reclaim."""
        if entry.queue.preemption.reclaim_within_cohort is not PreemptionPolicy.ANY:
            self.image.books.charge(entry.queue.name, dict(_reservable(entry)), entry.places)

    def _nominator(
        self,
        workload: Workload,
        queue: ClusterQueue,
        node: Node,
        spared: Iterable[str] = (),
    ) -> Nominator:
        return Nominator(
            image=self.image,
            policy=self.policy,
            queue=queue,
            node=node,
            workload=workload,
            spared=frozenset(spared),
        )

    # Outcomes

    def _start(self, entry: Entry) -> None:
        """It fits. Where admission is blocked until all pods are ready, it stays first and keeps its room."""
        if is_blocked(self.image, self.policy) or (self.admissions and self._one_by_one):
            self._wait(entry, explain.waiting_for_pods(), Requeue.FAILED_AFTER_NOMINATION)
        else:
            self._admit(entry)

    @property
    def _one_by_one(self) -> bool:
        return self.policy.pods_ready is not None and self.policy.pods_ready.block_admission

    def _admit(self, entry: Entry) -> None:
        workload, assignment = entry.workload, entry.nomination.assignment
        flavors = {fr.flavor for fr in assignment.usage}
        self.admissions.append(
            Admit(
                uid=workload.uid,
                namespace=workload.namespace,
                name=workload.name,
                cluster_queue=entry.queue.name,
                admission=Admission(
                    cluster_queue=entry.queue.name, pod_sets=assignment.admitted_pod_sets()
                ),
                checks=tuple(
                    rule.name
                    for rule in entry.queue.checks
                    if not rule.flavors or not rule.flavors.isdisjoint(flavors)
                ),
                borrowing=assignment.height,
                roots=(entry.node.root.name,),
            )
        )

    def _preempt(self, entry: Entry) -> None:
        self.preemptors.append(entry)
        self.victims.update((one.holding.workload.uid, one) for one in entry.targets)
        for target in sorted(entry.targets, key=lambda one: one.holding.workload.uid):
            if target.holding.workload.evicted is None:
                self.preemptions.append(_preemption(entry, target))
        explanation = explain.waiting_for_victims(len(entry.targets))
        self._wait(entry, explanation, Requeue.PENDING_PREEMPTION)

    def _skip(self, entry: Entry, message: str) -> None:
        explanation = explain.simply(PendingReason.WAITING_FOR_QUOTA, message)
        self._wait(entry, explanation, Requeue.FAILED_AFTER_NOMINATION, keep_cursor=True)

    def _explanation(self, entry: Entry) -> Explanation:
        known = entry.nomination.why
        return known or explain.explain(entry.nomination.assignment, entry.queue)

    def _wait(
        self,
        entry: Entry,
        explanation: Explanation,
        requeue: Requeue,
        *,
        keep_cursor: bool = False,
    ) -> None:
        cursor = entry.nomination.assignment.cursor if keep_cursor else ()
        self._put_off(entry.workload, entry.node, explanation, requeue, cursor)

    def _turn_away(self, workload: Workload, node: Node, rejection: Rejection) -> None:
        self._put_off(workload, node, rejection.explanation, rejection.requeue)

    def _put_off(
        self,
        workload: Workload,
        node: Node,
        explanation: Explanation,
        requeue: Requeue,
        cursor: Cursor = (),
    ) -> None:
        self.pending.append(
            Pending(
                uid=workload.uid,
                namespace=workload.namespace,
                name=workload.name,
                cluster_queue=node.name,
                explanation=explanation,
                requeue=requeue,
                cursor=cursor,
                generation=node.current_generation,
                roots=(node.root.name,),
            )
        )


def _reservable(entry: Entry) -> Iterator[tuple[FlavorResource, int]]:
    is_borrowing = entry.nomination.assignment.height > 0
    for fr, value in entry.usage.items():
        quota, used = entry.node.quota(fr), entry.node.used(fr)
        if not is_borrowing:
            yield fr, max(0, min(value, quota.nominal - used))
        elif quota.borrowing_limit is None:
            yield fr, value
        else:
            yield fr, max(0, min(value, quota.nominal + quota.borrowing_limit - used))


def _preemption(entry: Entry, target: Target) -> Preempt:
    victim, preemptor = target.holding.workload, entry.workload
    return Preempt(
        uid=victim.uid,
        namespace=victim.namespace,
        name=victim.name,
        cluster_queue=target.holding.cluster_queue,
        reason=target.reason,
        message=explain.preempted(preemptor.uid, target.reason),
        by_uid=preemptor.uid,
        by_namespace=preemptor.namespace,
        by_name=preemptor.name,
        by_cluster_queue=entry.queue.name,
        roots=(entry.node.root.name,),
    )

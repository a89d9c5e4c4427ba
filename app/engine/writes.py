"""What does one round write? Steps of a workload's life that need no decision, and the decisions of a cycle.

Both end in the same kind of value, a `CycleWrite`: the whole manifest with its new status and a function for its
tracking. A row's `decided_version` moves exactly when its job must be touched: when it begins or ceases to be one that
should run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.core import deadlines, lifecycle, upkeep
from app.core.decisions import Admit, CycleResult, Pending, PendingReason, Preempt, Requeue
from app.core.image import Image
from app.core.manifests import Manifest
from app.core.metadata import is_deleting, spec_of, status_of
from app.core.policy import Policy
from app.core.requests import PodSetRequest, asked
from app.core.resources import FlavorResource
from app.intake.workloads import decide, must_act, state_of, tracked
from app.store.admission import CycleWrite
from app.store.decisions import Conclusion
from app.store.ledger import Charge
from app.store.tracking import Retrack, StoredWorkload, Tracking

WORKLOAD_DELETED = "WorkloadDeleted"

_OBSTACLES = (PendingReason.MISCONFIGURED, PendingReason.SUSPENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The leader's epoch, the rules it plays by and the time of this round."""

    epoch: int
    policy: Policy
    now: datetime


def moved_on(manifest: Manifest, image: Image, at: Moment) -> CycleWrite | None:
    """What the controllers would do to this workload now, if anything."""
    wanted = upkeep.advance(manifest, image, at.now, at.policy)
    if is_deleting(wanted) and state_of(wanted) == "admitted":
        words = "The workload was deleted"
        wanted = lifecycle.evict(wanted, WORKLOAD_DELETED, words, at.now)
    if wanted is manifest:
        return None
    if spec_of(wanted) is not spec_of(manifest):
        wanted = _next_generation(wanted)
    return _write(manifest, wanted, at)


def looked_at(row: StoredWorkload, image: Image, at: Moment) -> CycleWrite | None:
    """Like `moved_on` for a whole row, whose next deadline may be over, or be told by an older policy.

    A deadline that is over and changed nothing leaves: some event has to come first. The job of a workload that was
    deactivated long enough ago is left to sync.
    """
    write = moved_on(row.manifest, image, at)
    if write is not None:
        return write
    deadline = deadlines.next_look_at(row.manifest, at.policy)
    is_over = deadline is not None and deadline <= at.now
    expires = is_over and _has_idle_job(row.tracking)
    wanted = None if is_over else deadline
    if row.tracking.next_deadline_at == wanted and not expires:
        return None

    def retrack(tracking: Tracking) -> Tracking:
        moved = replace(tracking, next_deadline_at=wanted)
        return decide(moved, at.epoch) if expires else moved

    return CycleWrite(manifest=row.manifest, expects=row.tracking.state, track=retrack)


def _has_idle_job(tracking: Tracking) -> bool:
    """Out of line, with a job that nothing is to be done about."""
    is_settled = tracking.decided_version == tracking.synced_version
    return tracking.state == "inactive" and tracking.job is not None and is_settled


def decided(
    result: CycleResult, rows: Mapping[str, StoredWorkload], image: Image, at: Moment
) -> list[CycleWrite]:
    """The cycle's decisions for those workloads whose rows are given, in the order they were decided."""
    preempted = (
        _preemption(one, rows[one.uid], at) for one in result.preemptions if one.uid in rows
    )
    taken: dict[tuple[str, FlavorResource], int] = {}
    admitted = (
        _admission(one, rows[one.uid], _charges(one, image, taken), at)
        for one in result.admissions
        if one.uid in rows
    )
    waiting = (
        _wait(one, rows[one.uid], asked(result.heads[one.uid], None, at.policy.accounting), at)
        for one in result.pending
        if one.uid in rows
    )
    return [*admitted, *preempted, *waiting]


def _write(old: Manifest, new: Manifest, at: Moment) -> CycleWrite:
    return CycleWrite(manifest=new, expects=state_of(old), track=_retrack(old, new, at))


def _retrack(old: Manifest, new: Manifest, at: Moment) -> Retrack:
    def retrack(tracking: Tracking) -> Tracking:
        moved = tracked(new, tracking, at.policy)
        return decide(moved, at.epoch) if must_act(old, new) else moved

    return retrack


def _admission(
    one: Admit, row: StoredWorkload, charges: tuple[Charge, ...], at: Moment
) -> CycleWrite:
    manifest = lifecycle.admit(row.manifest, one, at.now)
    if at.policy.pods_ready is not None:
        manifest = lifecycle.await_pods(manifest, at.now)
    carry = _retrack(row.manifest, manifest, at)

    def retrack(tracking: Tracking) -> Tracking:
        return _next_attempt(carry(tracking), at.epoch)

    words = f"Admitted by ClusterQueue {one.cluster_queue}"
    return CycleWrite(
        manifest=manifest,
        expects="pending",
        track=retrack,
        roots=one.roots,
        charges=charges,
        conclusion=_conclusion(one, row, "admitted", ("Admitted", words), None),
    )


def _preemption(one: Preempt, row: StoredWorkload, at: Moment) -> CycleWrite:
    manifest = lifecycle.preempt(row.manifest, one, at.now)
    return CycleWrite(
        manifest=manifest,
        expects="admitted",
        track=_retrack(row.manifest, manifest, at),
        roots=one.roots,
        conclusion=_conclusion(one, row, "preempted", (one.reason, one.message), None),
        group=one.by_uid,
    )


def _wait(
    one: Pending, row: StoredWorkload, requests: Sequence[PodSetRequest], at: Moment
) -> CycleWrite:
    why = one.explanation
    manifest = lifecycle.pending(row.manifest, why.reason, why.message, at.now)
    manifest = lifecycle.show_requests(manifest, requests)
    if one.requeue is Requeue.PREEMPTION_GATED:
        manifest = lifecycle.block_on_gates(manifest, why.message, at.now)
    facts = {
        "flavors": [
            {
                "podSet": fact.pod_set,
                "flavor": fact.flavor,
                "resource": fact.resource,
                "asked": fact.asked,
                "available": fact.available,
                "limit": fact.limit,
                "reason": fact.reason,
                "message": fact.message,
                "blockedBy": fact.blocked_by,
            }
            for fact in why.facts
        ]
    }
    return CycleWrite(
        manifest=manifest,
        expects="pending",
        track=_retrack(row.manifest, manifest, at),
        conclusion=_conclusion(one, row, "pending", (why.reason, why.message), facts),
    )


def _conclusion(
    one: Admit | Preempt | Pending,
    row: StoredWorkload,
    outcome: str,
    words: tuple[str, str],
    facts: Mapping[str, object] | None,
) -> Conclusion:
    reason, message = words
    return Conclusion(
        workload_uid=one.uid,
        attempt=row.tracking.attempt,
        cluster_queue=one.cluster_queue,
        outcome=outcome,
        reason=str(reason),
        message=message,
        facts=facts,
    )


def _charges(
    one: Admit, image: Image, taken: dict[tuple[str, FlavorResource], int]
) -> tuple[Charge, ...]:
    """What the admission takes, and how much of that lies above the queue's nominal quota."""
    node = image.tree.queue(one.cluster_queue)
    charges = []
    for fr, amount in sorted(_usage(one).items()):
        place = (one.cluster_queue, fr)
        used = (node.used(fr) if node else 0) + taken.get(place, 0)
        nominal = node.quota(fr).nominal if node else 0
        taken[place] = taken.get(place, 0) + amount
        charges.append(
            Charge(
                cluster_queue=one.cluster_queue,
                flavor=fr.flavor,
                resource=fr.resource,
                amount=amount,
                borrowed=min(amount, max(0, used + amount - nominal)),
            )
        )
    return tuple(charges)


def _usage(one: Admit) -> dict[FlavorResource, int]:
    usage: dict[FlavorResource, int] = {}
    for pod_set in one.admission.pod_sets:
        for resource, amount in pod_set.usage.items():
            fr = FlavorResource(pod_set.flavors[resource], resource)
            usage[fr] = usage.get(fr, 0) + amount
    return usage


def _next_attempt(tracking: Tracking, epoch: int) -> Tracking:
    return replace(tracking, attempt=tracking.attempt + 1, epoch=epoch)


def _next_generation(manifest: Manifest) -> Manifest:
    metadata = manifest["metadata"]
    return {
        **manifest,
        "metadata": {**metadata, "generation": metadata.get("generation", 1) + 1},
    }


def obstacle(manifest: Manifest) -> tuple[str, str] | None:
    """Reason and message, where its status says that something outside the line keeps it from queueing."""
    found = lifecycle.condition(status_of(manifest), "QuotaReserved")
    if found is None or found["status"] == "True" or found["reason"] not in _OBSTACLES:
        return None
    return found["reason"], found["message"]


def says_so_already(one: Pending, manifest: Manifest) -> bool:
    """Its status tells this reason already."""
    found = lifecycle.condition(status_of(manifest), "QuotaReserved")
    why = one.explanation
    return found is not None and (found.get("reason"), found.get("message")) == (
        why.reason,
        why.message,
    )


def uids(result: CycleResult) -> Iterable[str]:
    for group in (result.admissions, result.preemptions, result.pending):
        for one in group:
            yield one.uid

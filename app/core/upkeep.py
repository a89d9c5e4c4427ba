"""What would the controllers do to a workload now?

Everything that happens to a workload without a scheduling decision: its queue was stopped or runs again, somebody
deactivated or reactivated it, an admission check spoke, its back-off or its time is over, its pods were not ready in
time, its priority class has a new value. `advance` applies all of it at once and is idempotent: called again with
nothing new, it returns the very same object. The engine calls it for the keys it touches and when a deadline passes
(``deadlines``), the conformance runner after every step, and both see the same life.

Releasing the quota of an evicted workload is *not* done here: that waits until its job is seen to have stopped
(``lifecycle.release``).
"""

from datetime import datetime

from app.core import admission_checks, deadlines, explain, lifecycle, pods_ready
from app.core.decisions import PendingReason
from app.core.image import Image
from app.core.manifests import parse
from app.core.metadata import Manifest, condition, is_true, spec_of, stamp, status_of
from app.core.model import ClusterQueue, StopPolicy, Workload
from app.core.policy import DEFAULT, PodsReady, Policy

_MISSING = "doesn't exist"
_STOPS = {"LocalQueueStopped": "LocalQueue", "ClusterQueueStopped": "ClusterQueue"}


def advance(manifest: Manifest, image: Image, now: datetime, policy: Policy = DEFAULT) -> Manifest:
    """The manifest as the controllers would leave it; the same object when they have nothing to do."""
    workload = parse(manifest)
    if not isinstance(workload, Workload):
        return manifest
    if workload.finished:
        return _clear_away(manifest, now, policy)
    manifest = _follow_priority_class(manifest, workload, image)
    manifest = _deactivate(manifest)
    if spec_of(manifest).get("active", True) is False:
        return _evict_inactive(manifest, now)
    if workload.admission is not None:
        return _keep_or_stop(manifest, workload, image, now, policy.pods_ready)
    return _let_queue(manifest, workload, image, now)


def _clear_away(manifest: Manifest, now: datetime, policy: Policy) -> Manifest:
    """A finished workload that has been kept for long enough is deleted as a person would delete it."""
    expires_at = deadlines.expires_at(manifest, policy.retention)
    if expires_at is None or now < expires_at:
        return manifest
    dying = {"deletionTimestamp": stamp(now), "deletionGracePeriodSeconds": 0}
    return {**manifest, "metadata": {**manifest["metadata"], **dying}}


def _follow_priority_class(manifest: Manifest, workload: Workload, image: Image) -> Manifest:
    """A changed value of a priority class reaches the workloads that name it."""
    known = image.priority_classes.get(workload.priority_class or "")
    if known is None or known.value == workload.priority:
        return manifest
    return _with_spec(manifest, priority=known.value)


def _deactivate(manifest: Manifest) -> Manifest:
    if not is_true(status_of(manifest), "DeactivationTarget"):
        return manifest
    return _with_spec(manifest, active=False)


def _evict_inactive(manifest: Manifest, now: datetime) -> Manifest:
    status = status_of(manifest)
    evicted, requeued = condition(status, "Evicted") or {}, condition(status, "Requeued") or {}
    was_lifted = requeued.get("status") == "True" and requeued["reason"] == "Reactivated"
    is_evicted = evicted.get("status") == "True" and str(evicted["reason"]).startswith(
        "Deactivated"
    )
    if is_evicted and not was_lifted:
        return manifest
    return lifecycle.evict_deactivated(manifest, now)


def _keep_or_stop(
    manifest: Manifest,
    workload: Workload,
    image: Image,
    now: datetime,
    patience: PodsReady | None,
) -> Manifest:
    """A workload that holds quota: is there a reason to stop it?"""
    if workload.evicted is not None:
        return manifest
    for stopped in (
        admission_checks.answer(manifest, now),
        _stop_with_queue(manifest, workload, image, now),
        _end_in_time(manifest, now),
        _end_patience(manifest, now, patience),
    ):
        if stopped is not manifest:
            return stopped
    return _admit_when_ready(manifest, workload, image, now)


def _stop_with_queue(
    manifest: Manifest, workload: Workload, image: Image, now: datetime
) -> Manifest:
    stopped = _stopped_by(workload, image)
    if stopped is None:
        return manifest
    kind, policy = stopped
    if policy is StopPolicy.HOLD_AND_DRAIN:
        return lifecycle.evict(manifest, f"{kind}Stopped", f"The {kind} is stopped", now)
    if not workload.admitted:
        withdrawn = lifecycle.withdraw(manifest, f"The {kind} is stopped", now)
        return _list_checks(withdrawn, image.queue_of(workload), now)
    return manifest


def _end_in_time(manifest: Manifest, now: datetime) -> Manifest:
    """The maximum execution time is over."""
    end_at = deadlines.must_end_at(manifest)
    if end_at is None or now < end_at:
        return manifest
    words = "exceeding the maximum execution time"
    return lifecycle.deactivate_now(manifest, "MaximumExecutionTimeExceeded", words, now)


def _end_patience(manifest: Manifest, now: datetime, patience: PodsReady | None) -> Manifest:
    """Its pods were not ready in time."""
    due_at = None if patience is None else pods_ready.due_at(manifest, patience)
    if patience is None or due_at is None or now < due_at:
        return manifest
    return pods_ready.expire(manifest, patience, now)


def _admit_when_ready(
    manifest: Manifest, workload: Workload, image: Image, now: datetime
) -> Manifest:
    held = workload.admission.cluster_queue if workload.admission is not None else ""
    manifest = _list_checks(manifest, image.cluster_queues.get(held), now)
    return lifecycle.sync_admitted(manifest, now)


def _list_checks(manifest: Manifest, queue: ClusterQueue | None, now: datetime) -> Manifest:
    return manifest if queue is None else admission_checks.sync(manifest, queue, now)


def _let_queue(manifest: Manifest, workload: Workload, image: Image, now: datetime) -> Manifest:
    """A workload without quota: may it queue again, and if not, does it know why?"""
    sent_back = admission_checks.answer(manifest, now)
    if sent_back is not manifest:
        return advance(_release_at_once(sent_back, now), image, now)
    manifest = _list_checks(manifest, image.queue_of(workload), now)
    requeued = condition(status_of(manifest), "Requeued") or {}
    if requeued.get("status") == "False":
        manifest = _lift_hold(manifest, workload, image, str(requeued["reason"]), now)
    elif workload.requeue_at is not None and workload.requeue_at <= now:
        manifest = _end_backoff(manifest, now)
    reason, message = why_out(workload, image)
    if reason is not None:
        return lifecycle.pending(manifest, reason, message, now)
    if _is_answered(condition(status_of(manifest), "QuotaReserved") or {}):
        message = "The workload waits to be looked at again"
        return lifecycle.pending(manifest, PendingReason.PENDING_EVALUATION, message, now)
    return manifest


def _release_at_once(manifest: Manifest, now: datetime) -> Manifest:
    """Evicted without having held quota: nothing has to stop first."""
    is_off = spec_of(manifest).get("active", True) is False
    return manifest if is_off else lifecycle.release(manifest, now)


def _is_answered(reserved: Manifest) -> bool:
    """Does the condition name an obstacle that this module reported and that is gone?"""
    if reserved.get("reason") in (PendingReason.SUSPENDED, PendingReason.DEACTIVATED):
        return True
    message = str(reserved.get("message", ""))
    return message.endswith(_MISSING) or message == explain.NAMESPACE_MISMATCH


def why_out(workload: Workload, image: Image) -> tuple[PendingReason | None, str]:
    """Why its queue is closed to a workload, if it is."""
    stopped = _stopped_by(workload, image)
    if stopped is not None:
        return PendingReason.SUSPENDED, f"The {stopped[0]} is stopped"
    local = image.local_queues.get((workload.namespace, workload.queue_name))
    if local is None:
        return PendingReason.MISCONFIGURED, f"LocalQueue {workload.queue_name} {_MISSING}"
    queue = image.cluster_queues.get(local.cluster_queue)
    if queue is None:
        return PendingReason.MISCONFIGURED, f"ClusterQueue {local.cluster_queue} {_MISSING}"
    if image.why_inactive(local.cluster_queue) is not None:
        return PendingReason.SUSPENDED, f"ClusterQueue {local.cluster_queue} is inactive"
    if not image.admits_namespace(queue, workload.namespace):
        return PendingReason.MISCONFIGURED, explain.NAMESPACE_MISMATCH
    return None, ""


def _lift_hold(
    manifest: Manifest, workload: Workload, image: Image, reason: str, now: datetime
) -> Manifest:
    if reason.startswith("Deactivated"):
        return lifecycle.requeue(manifest, "Reactivated", "The workload was reactivated", now)
    if reason in _STOPS:
        kind = _STOPS[reason]
        if _policy_of(kind, workload, image) is not StopPolicy.NONE:
            return manifest
        message = f"The {kind} was restarted after being stopped"
        return lifecycle.requeue(manifest, f"{kind}Restarted", message, now)
    if workload.requeue_at is None or workload.requeue_at <= now:
        return _end_backoff(manifest, now)
    return manifest


def _end_backoff(manifest: Manifest, now: datetime) -> Manifest:
    return lifecycle.requeue(manifest, "BackoffFinished", "The workload backoff was finished", now)


def _stopped_by(workload: Workload, image: Image) -> tuple[str, StopPolicy] | None:
    """Which of its two queues is stopped, and how. A stopped LocalQueue has the say, as in Kueue."""
    for kind in _STOPS.values():
        policy = _policy_of(kind, workload, image)
        if policy is not None and policy is not StopPolicy.NONE:
            return kind, policy
    return None


def _policy_of(kind: str, workload: Workload, image: Image) -> StopPolicy | None:
    """None while the queue does not exist."""
    if kind == "LocalQueue":
        local = image.local_queues.get((workload.namespace, workload.queue_name))
        return None if local is None else local.stop_policy
    name = workload.admission.cluster_queue if workload.admission else None
    queue = image.cluster_queues.get(name) if name else image.queue_of(workload)
    return None if queue is None else queue.stop_policy


def _with_spec(manifest: Manifest, **changes: object) -> Manifest:
    return {**manifest, "spec": {**spec_of(manifest), **changes}}

"""How is a workload told to stop, and what does it keep in mind about that?

An eviction is one step: the condition with its reason, admission checks that start over, preemption gates that close,
one more in the count of evictions by reason and cause. Its quota stays taken until its job was seen to have stopped
(``lifecycle.release``). A deactivation is an eviction of a workload that shall not come back by itself; it forgets the
back-off, so a later life begins with all of its tries. Manifests in, manifests out; nothing is mutated.
"""

from datetime import datetime

from app.core.conditions import set_condition, with_status
from app.core.decisions import PendingReason
from app.core.metadata import Manifest, condition, is_true, stamp, status_of

GATED = "BlockedOnPreemptionGates"
_DEACTIVATED = "Deactivated"


def evict(
    manifest: Manifest, reason: str, message: str, now: datetime, *, cause: str = ""
) -> Manifest:
    """Ask for the workload to stop. Its quota stays taken until ``release``.

    `cause` is what was behind the reason, where that says too little; it is counted with it.
    """
    shown = f"{reason}DueTo{cause}" if cause and reason == _DEACTIVATED else reason
    manifest = set_condition(
        manifest, "Evicted", status=True, reason=shown, message=message, now=now
    )
    if is_true(status_of(manifest), GATED):
        manifest = set_condition(
            manifest, GATED, status=False, reason=shown, message=message, now=now
        )
    status = status_of(manifest)
    return with_status(
        manifest,
        admissionChecks=[_reset_check(check, now) for check in status.get("admissionChecks") or ()]
        or None,
        schedulingStats=_counted(status.get("schedulingStats") or {}, reason, cause),
        clusterName=None,
        nominatedClusterNames=None,
        unhealthyNodes=None,
        preemptionGates=[_closed(gate, now) for gate in status.get("preemptionGates") or ()]
        or None,
    )


def back_off(manifest: Manifest, *, until: str, count: int | None = None) -> Manifest:
    """Keep it out of line until then; an earlier, later date stays. `count` is the number of its evictions."""
    state = dict(status_of(manifest).get("requeueState") or {})
    state["requeueAt"] = max(until, state.get("requeueAt", ""))
    if count is not None:
        state["count"] = count
    return with_status(manifest, requeueState=state)


def deactivate(manifest: Manifest, cause: str, message: str, now: datetime) -> Manifest:
    """Mark a workload for deactivation by the controller; ``upkeep`` carries it out."""
    return set_condition(
        manifest, "DeactivationTarget", status=True, reason=cause, message=message, now=now
    )


def deactivate_now(manifest: Manifest, cause: str, message: str, now: datetime) -> Manifest:
    """Mark it, set it inactive and evict it in one step, so that nothing can come in between."""
    marked = deactivate(manifest, cause, message, now)
    spec = {**marked.get("spec", {}), "active": False}
    return evict_deactivated({**marked, "spec": spec}, now)


def evict_deactivated(manifest: Manifest, now: datetime) -> Manifest:
    """Evict a workload whose ``spec.active`` is false and forget its back-off."""
    target = condition(status_of(manifest), "DeactivationTarget")
    cause, message = "", "The workload is deactivated"
    if target is not None and target["status"] == "True":
        cause = target["reason"]
        message = f"{message} due to {target['message'][:1].lower()}{target['message'][1:]}"
    kept = [
        one
        for one in status_of(manifest).get("conditions") or ()
        if one["type"] != "DeactivationTarget"
    ]
    manifest = with_status(manifest, conditions=kept, requeueState=None)
    manifest = _stay_out(manifest, message, now)
    return evict(manifest, _DEACTIVATED, message, now, cause=cause)


def _stay_out(manifest: Manifest, message: str, now: datetime) -> Manifest:
    """Whatever let it queue before is over. Where it held no quota nothing has to stop, and it is pending no more."""
    manifest = set_condition(
        manifest, "Requeued", status=False, reason=_DEACTIVATED, message=message, now=now
    )
    if is_true(status_of(manifest), "QuotaReserved"):
        return manifest
    reason = PendingReason.DEACTIVATED
    return set_condition(
        manifest, "QuotaReserved", status=False, reason=reason, message=message, now=now
    )


def _reset_check(check: Manifest, now: datetime) -> Manifest:
    """An eviction makes every check start over; only an asked-for retry counts as one."""
    if check.get("state") == "Pending":
        return check
    fresh = new_check(check["name"], now) | {"message": "Reset to Pending after eviction"}
    if "requeueAfterSeconds" in check:
        fresh["requeueAfterSeconds"] = check["requeueAfterSeconds"]
    if check.get("state") == "Retry":
        fresh["retryCount"] = int(check.get("retryCount") or 0) + 1
    return fresh


def _counted(stats: Manifest, reason: str, cause: str) -> Manifest:
    evictions = [dict(one) for one in stats.get("evictions") or ()]
    for one in evictions:
        if (one["reason"], one.get("underlyingCause", "")) == (reason, cause):
            one["count"] += 1
            break
    else:
        evictions.append({"reason": reason, "underlyingCause": cause, "count": 1})
    return {**stats, "evictions": evictions}


def _closed(gate: Manifest, now: datetime) -> Manifest:
    if gate.get("position") != "Open":
        return gate
    return {**gate, "position": "Closed", "lastTransitionTime": stamp(now)}


def new_check(name: str, now: datetime) -> Manifest:
    return {"name": name, "state": "Pending", "lastTransitionTime": stamp(now), "message": ""}

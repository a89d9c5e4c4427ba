"""What would the Job controller do next for one Job?

`plan` compares a Job with its pods and answers with the pods to create, to delete and to let go of, and the Job's next
status; it follows kube-controller-manager's job controller (1.37). It is level-triggered: given its own outcome it
plans nothing. Two things that cannot be read off the cluster are remembered from sync to sync (`Memory`): which ended
pods are counted already though their finalizer is still on, and the failures that back-off is reckoned from.

Unlike the real controller, which needs two or three status writes for it, counting a pod is one write and
``uncountedTerminatedPods`` stays empty. Success policies, pod failure policies and per-index back-off are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from app.core.manifests import Manifest
from app.sandbox.batch import facts, indexes
from app.sandbox.batch.rules import Rules
from app.sandbox.batch.tally import Memory, Tally, tally
from app.sandbox.batch.verdict import Verdict, deadline, verdict
from app.sandbox.times import stamp

_MAX_BACKOFF = timedelta(minutes=10)
_MAX_PER_SYNC = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How patient the controller is; `backoff` follows a pod's first failure and doubles with each further one."""

    backoff: timedelta = timedelta(seconds=10)
    speed: float = 1.0  # simulated seconds per real second, for deadlines


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something to tell in an Event on the Job."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    status: Manifest
    remember: Memory
    create: tuple[int | None, ...] = ()  # the completion index of each new pod
    delete: tuple[Manifest, ...] = ()
    release: tuple[Manifest, ...] = ()  # pods whose tracking finalizer has done its duty
    happenings: tuple[Happening, ...] = ()
    again_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moves:
    """Pods to make and to stop, and when to look again."""

    create: tuple[int | None, ...] = ()
    delete: tuple[Manifest, ...] = ()
    again_at: datetime | None = None


def plan(
    job: Manifest,
    pods: Sequence[Manifest],
    memory: Memory,
    now: datetime,
    *,
    pace: Pace,
    rules: Rules,
) -> Plan:
    count = tally(job, pods, memory, now)
    status = _started(job, now)
    end = verdict(job, count, now, pace.speed)
    if end is not None:
        moves = _Moves(delete=count.active)
    elif facts.deleting(job):
        moves = _Moves()
    else:
        moves = _moves(job, count, now, pace)
    active = len(count.active) - len(moves.delete) + len(moves.create)
    end = end or _completed(job, count, active)
    status, happenings = _suspension(job, status, now, rules) if end is None else (status, ())
    if end is not None and end.fails:
        count = count.with_the_rest_failed()
    status = _counted(job, status, count, active, moves)
    if end is not None:
        settled = not active and not status["terminating"]
        status, happenings = _ended(status, end, now, settled=settled)
    memory = count.memory
    if status.get("startTime") != facts.status_of(job).get("startTime"):
        memory = replace(memory, started_at=now)
    return Plan(
        status=status,
        remember=memory,
        create=moves.create,
        delete=moves.delete,
        release=_released(job, count, end),
        happenings=happenings,
        again_at=_earliest(moves.again_at, deadline(job, status, memory, pace.speed)),
    )


def _started(job: Manifest, now: datetime) -> dict[str, Any]:
    status = {"uncountedTerminatedPods": {}, **facts.status_of(job)}
    if status.get("startTime") is None and not facts.suspended(job):
        status["startTime"] = stamp(now)
    return status


def _moves(job: Manifest, count: Tally, now: datetime, pace: Pace) -> _Moves:
    active = _easiest_to_stop_first(count.active)
    if facts.suspended(job):
        return _Moves(delete=active)
    wanted = _wanted(job, count)
    if len(active) > wanted:
        return _Moves(delete=active[: len(active) - wanted][:_MAX_PER_SYNC])
    waiting = count.terminating if job["spec"].get("podReplacementPolicy") == "Failed" else 0
    missing = min(wanted - waiting - len(active), _MAX_PER_SYNC)
    if missing <= 0:
        return _Moves()
    again_at = _backed_off_until(count.memory, pace)
    if again_at is not None and again_at > now:
        return _Moves(again_at=again_at)
    return _Moves(create=_new_pods(job, count, missing))


def _wanted(job: Manifest, count: Tally) -> int:
    spec = job["spec"]
    parallelism: int = spec["parallelism"]
    if spec.get("completions") is None:
        return len(count.active) if count.succeeded else parallelism
    completions: int = spec["completions"]
    return max(0, min(completions - count.succeeded, parallelism))


def _new_pods(job: Manifest, count: Tally, missing: int) -> tuple[int | None, ...]:
    if not facts.indexed(job):
        return (None,) * missing
    running = {facts.completion_index(pod) for pod in count.active}
    taken = count.indexes | {index for index in running if index is not None}
    return indexes.first_missing(taken, job["spec"]["completions"], missing)


def _easiest_to_stop_first(pods: Sequence[Manifest]) -> tuple[Manifest, ...]:
    """Unassigned before assigned, pending before running, not ready before ready, young before old."""
    young_first = sorted(pods, key=_age, reverse=True)
    return tuple(sorted(young_first, key=_attachment))


def _age(pod: Manifest) -> tuple[str, str]:
    return (pod["metadata"].get("creationTimestamp", ""), pod["metadata"]["uid"])


def _attachment(pod: Manifest) -> tuple[bool, bool, bool]:
    return (bool(pod["spec"].get("nodeName")), facts.phase(pod) == "Running", facts.ready(pod))


def _backed_off_until(memory: Memory, pace: Pace) -> datetime | None:
    if not memory.failures or memory.last_failure_at is None:
        return None
    doublings = min(memory.failures - 1, 10)
    pause: timedelta = min(pace.backoff * 2**doublings, _MAX_BACKOFF)
    return memory.last_failure_at + pause


def _completed(job: Manifest, count: Tally, active: int) -> Verdict | None:
    completions = job["spec"].get("completions")
    wanted = 1 if completions is None else completions
    if facts.deleting(job) or active or count.succeeded < wanted:
        return None
    return Verdict.completed()


def _suspension(
    job: Manifest, status: dict[str, Any], now: datetime, rules: Rules
) -> tuple[dict[str, Any], tuple[Happening, ...]]:
    """Follow ``spec.suspend`` with the condition; resuming restarts the clock that deadlines run on."""
    if facts.deleting(job):
        return status, ()
    held = facts.condition(status, "Suspended")
    if facts.suspended(job):
        if held is not None and held["status"] == "True":
            return status, ()
        status = _with_condition(status, "Suspended", "True", "JobSuspended", "Job suspended", now)
        if rules.suspension_clears_start_time:
            status.pop("startTime", None)
        return status, (Happening(type="Normal", reason="Suspended", message="Job suspended"),)
    if held is None or held["status"] == "False":
        return status, ()
    status = _with_condition(status, "Suspended", "False", "JobResumed", "Job resumed", now)
    status["startTime"] = stamp(now)
    return status, (Happening(type="Normal", reason="Resumed", message="Job resumed"),)


def _counted(
    job: Manifest, status: dict[str, Any], count: Tally, active: int, moves: _Moves
) -> dict[str, Any]:
    status = {**status, "active": active, "succeeded": count.succeeded, "failed": count.failed}
    for name in ("active", "succeeded", "failed"):
        if not status[name]:
            del status[name]
    stopped = {pod["metadata"]["uid"] for pod in moves.delete}
    status["ready"] = sum(
        facts.ready(pod) for pod in count.active if pod["metadata"]["uid"] not in stopped
    )
    leaving = sum(bool(pod["spec"].get("nodeName")) for pod in moves.delete)
    status["terminating"] = count.terminating + leaving
    if facts.indexed(job) and count.indexes:
        status["completedIndexes"] = indexes.write(count.indexes)
    return status


def _ended(
    status: dict[str, Any], end: Verdict, now: datetime, *, settled: bool
) -> tuple[dict[str, Any], tuple[Happening, ...]]:
    """Write the interim condition at once and the final one when no pod is left to stop."""
    interim = "FailureTarget" if end.fails else "SuccessCriteriaMet"
    if not facts.holds(status, interim):
        status = _with_condition(status, interim, "True", end.reason, end.message, now)
    if not settled:
        return status, ()
    final = "Failed" if end.fails else "Complete"
    status = _with_condition(status, final, "True", end.reason, end.message, now)
    if end.fails:
        return status, (Happening(type="Warning", reason=end.reason, message=end.message),)
    status["completionTime"] = stamp(now)
    return status, (Happening(type="Normal", reason="Completed", message="Job completed"),)


def _with_condition(
    status: dict[str, Any], kind: str, value: str, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    new = {
        "type": kind,
        "status": value,
        "lastProbeTime": stamp(now),
        "lastTransitionTime": stamp(now),
        "reason": reason,
        "message": message,
    }
    others = [one for one in status.get("conditions") or () if one["type"] != kind]
    return {**status, "conditions": [*others, new]}


def _released(job: Manifest, count: Tally, end: Verdict | None) -> tuple[Manifest, ...]:
    """Counted pods are let go of, and everything is once the Job is over or going away."""
    everything = end is not None or facts.deleting(job)
    return tuple(
        pod
        for pod in count.tracked
        if everything or facts.phase(pod) == "Succeeded" or facts.failed(pod, job)
    )


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((one for one in moments if one is not None), default=None)


def forget(memory: Memory, uids: frozenset[str]) -> Memory:
    """Drop pods whose finalizer is off: they cannot be counted twice any more."""
    return replace(memory, counted=memory.counted - uids)

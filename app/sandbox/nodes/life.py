"""What does the kubelet do next with a pod that is bound to a node, and when?

A pod's life has stages: bound, running, stopping. `next_step` says how the present stage ends and how long it lasts;
the annotations of the pod decide both. Pods with ``restartPolicy: Always`` run until deleted; with OnFailure a failed
container is not started again. Statuses look like those of the real test clusters' kubelet stand-in. Pure.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from app.core.manifests import Manifest
from app.sandbox import annotations
from app.sandbox.batch import facts
from app.sandbox.times import stamp

Stage = Literal["starting", "running", "stopping"]

_TERMINATED_BY_SIGNAL = 143  # 128 + SIGTERM
_READY_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What pods do that do not choose for themselves, in simulated seconds."""

    start_s: float = 0.05
    run_s: float = annotations.DEFAULT_RUN_S
    stop_s: float = 0.02


@dataclass(frozen=True, slots=True)
class Step:
    stage: Stage
    lasts_s: float | None  # None: until something else happens


def next_step(pod: Manifest, habits: Habits) -> Step | None:
    """Return the present stage; None if the kubelet has nothing to do with the pod."""
    if not pod["spec"].get("nodeName"):
        return None
    if facts.deleting(pod):
        return _stopping(pod, habits)
    if facts.phase(pod) == "Pending":
        return Step("starting", annotations.seconds(pod, annotations.START_SECONDS, habits.start_s))
    if facts.phase(pod) == "Running":
        if pod["spec"].get("restartPolicy") == "Always":
            return Step("running", None)
        return Step("running", annotations.seconds(pod, annotations.RUN_SECONDS, habits.run_s))
    return None


def _stopping(pod: Manifest, habits: Habits) -> Step:
    if facts.ended(pod):
        return Step("stopping", 0)
    wanted = annotations.seconds(pod, annotations.STOP_SECONDS, habits.stop_s)
    grace_s = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    return Step("stopping", grace_s if wanted is None else min(wanted, grace_s))


def running(pod: Manifest, now: datetime) -> Manifest:
    """Return the status of a pod that starts now."""
    ready = [
        {"type": kind, "status": "True", "lastTransitionTime": stamp(now)}
        for kind in _READY_CONDITIONS
    ]
    state = {"running": {"startedAt": stamp(now)}}
    return {
        **(pod.get("status") or {}),
        "phase": "Running",
        "startTime": stamp(now),
        "conditions": [*_kept_conditions(pod), *ready],
        "containerStatuses": _containers(pod, state, ready=True),
    }


def over(pod: Manifest, now: datetime) -> Manifest:
    """Return the status of a pod that ends now: by itself, or because it is deleted."""
    killed = facts.deleting(pod)
    code = _TERMINATED_BY_SIGNAL if killed else annotations.exit_code(pod)
    status = pod.get("status") or {}
    terminated = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": status.get("startTime") or stamp(now),
        "finishedAt": stamp(now),
    }
    not_ready = [
        {
            "type": kind,
            "status": "False",
            "reason": "PodFailed" if code else "PodCompleted",
            "lastTransitionTime": stamp(now),
        }
        for kind in ("ContainersReady", "Ready")
    ]
    lasting = [
        one
        for one in status.get("conditions") or ()
        if one["type"] not in ("ContainersReady", "Ready")
    ]
    return {
        **status,
        "phase": "Failed" if code else "Succeeded",
        "conditions": [*lasting, *not_ready],
        "containerStatuses": _containers(pod, {"terminated": terminated}, ready=False),
    }


def _kept_conditions(pod: Manifest) -> list[Manifest]:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return [one for one in conditions if one["type"] not in _READY_CONDITIONS]


def _containers(pod: Manifest, state: dict[str, Any], *, ready: bool) -> list[Manifest]:
    return [
        {
            "name": container["name"],
            "image": container.get("image") or "",
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]

"""Which changes of a Job's status does kube-apiserver refuse?

From Kubernetes' validation of Job status transitions (1.37): a start time stays while the Job is not suspended, counts
of ended pods never shrink, a finished Job stays finished, and a Job is only called finished after the interim
condition (SuccessCriteriaMet, FailureTarget) says so and no pod is active.
"""

from typing import Any

from app.core.manifests import Manifest
from app.errors import FieldError
from app.sandbox.batch import facts
from app.sandbox.faulty_fields import IMMUTABLE, invalid, required

#: Conditions that stay once they hold, and what the message calls them.
_LASTING = {
    "Failed": "terminal ",
    "Complete": "terminal ",
    "FailureTarget": "terminal ",
    "SuccessCriteriaMet": "",
}


def status_faults(new: Manifest, old: Manifest) -> list[FieldError]:
    status, before = facts.status_of(new), facts.status_of(old)
    if status == before:
        return []
    return [
        *_counts(status),
        *_finish(status, before),
        *_times(new, old),
        *_steps_back(new, old),
    ]


def _fault(detail: str) -> FieldError:
    return FieldError("status.conditions", f"Invalid value: {detail}")


def _counts(status: dict[str, Any]) -> list[FieldError]:
    found = [
        invalid(f"status.{name}", status[name], "must be greater than or equal to 0")
        for name in ("active", "succeeded", "failed", "ready", "terminating")
        if (status.get(name) or 0) < 0
    ]
    ready = status.get("ready") or 0
    if ready > (status.get("active") or 0):
        found.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return found


def _finish(status: dict[str, Any], before: dict[str, Any]) -> list[FieldError]:
    complete, failed = facts.holds(status, "Complete"), facts.holds(status, "Failed")
    was = facts.holds(before, "Complete") or facts.holds(before, "Failed")
    if not (complete or failed) or was:
        return []
    found = []
    if complete and failed:
        found.append(_fault("cannot set Complete=True and Failed=true conditions"))
    if failed and not facts.holds(status, "FailureTarget"):
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        found.append(_fault(detail))
    if complete and not facts.holds(status, "SuccessCriteriaMet"):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        found.append(_fault(detail))
    for name in ("active", "terminating"):
        if status.get(name):
            detail = f"{name}>0 is invalid for finished job"
            found.append(invalid(f"status.{name}", status[name], detail))
    return found


def _times(new: Manifest, old: Manifest) -> list[FieldError]:
    status, before = facts.status_of(new), facts.status_of(old)
    found = []
    started, completed = status.get("startTime"), status.get("completionTime")
    complete = facts.holds(status, "Complete")
    if completed and not complete:
        detail = "cannot set completionTime when there is no Complete=True condition"
        found.append(invalid("status.completionTime", completed, detail))
    if complete and not completed:
        detail = "completionTime is required for Complete jobs"
        found.append(required("status.completionTime", detail))
    if before.get("completionTime") and completed and completed != before["completionTime"]:
        found.append(invalid("status.completionTime", completed, IMMUTABLE))
    moved = before.get("startTime") is not None and started != before["startTime"]
    if moved and not facts.suspended(new) and not _resumes(status, before):
        detail = "field is immutable for unsuspended job once set"
        found.append(invalid("status.startTime", started, detail))
    nothing_to_do = facts.suspended(new) and new["spec"].get("completions") == 0
    if facts.finished(new) and started is None and not nothing_to_do:
        found.append(required("status.startTime", "startTime is required for finished job"))
    return found


def _resumes(status: dict[str, Any], before: dict[str, Any]) -> bool:
    now = facts.condition(status, "Suspended")
    resumed = now is not None and now.get("status") == "False"
    return facts.holds(before, "Suspended") and resumed


def _steps_back(new: Manifest, old: Manifest) -> list[FieldError]:
    status, before = facts.status_of(new), facts.status_of(old)
    found = [
        _fault(f"cannot disable the {word}{kind}=True condition")
        for kind, word in _LASTING.items()
        if facts.holds(before, kind) and not facts.holds(status, kind)
    ]
    spec = new["spec"]
    may_shrink = facts.indexed(new) and spec.get("completions") == spec.get("parallelism")
    for name in ("failed", "succeeded"):
        shrinks = (status.get(name) or 0) < (before.get(name) or 0)
        if shrinks and not (name == "succeeded" and may_shrink):
            detail = f"cannot decrease the {name} counter"
            found.append(invalid(f"status.{name}", status.get(name) or 0, detail))
    return found

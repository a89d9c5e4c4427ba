"""What do a Job and its pods say about themselves?

Readers only; names follow kube-controller-manager's job controller, where the terms come from: a pod is *active* until
it has ended or is asked to stop, *terminating* once it is asked to and has not ended yet.
"""

from collections.abc import Iterable
from typing import Any

from app.core.manifests import Manifest

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
DEFAULT_CONTROLLER = "kubernetes.io/job-controller"

ENDED = ("Succeeded", "Failed")


def suspended(job: Manifest) -> bool:
    return bool(job["spec"].get("suspend"))


def indexed(job: Manifest) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def status_of(job: Manifest) -> dict[str, Any]:
    return job.get("status") or {}


def condition(status: Manifest, kind: str) -> Manifest | None:
    conditions: list[Manifest] = status.get("conditions") or []
    return next((one for one in conditions if one["type"] == kind), None)


def holds(status: Manifest, kind: str) -> bool:
    found = condition(status, kind)
    return found is not None and bool(found.get("status") == "True")


def finished(job: Manifest) -> bool:
    status = status_of(job)
    return holds(status, "Complete") or holds(status, "Failed")


def managed_elsewhere(job: Manifest) -> bool:
    return bool(job["spec"].get("managedBy", DEFAULT_CONTROLLER) != DEFAULT_CONTROLLER)


def phase(pod: Manifest) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def ended(pod: Manifest) -> bool:
    return phase(pod) in ENDED


def deleting(manifest: Manifest) -> bool:
    return "deletionTimestamp" in manifest["metadata"]


def active(pod: Manifest) -> bool:
    return not ended(pod) and not deleting(pod)


def terminating(pod: Manifest) -> bool:
    return not ended(pod) and deleting(pod)


def ready(pod: Manifest) -> bool:
    return holds(pod.get("status") or {}, "Ready")


def tracked(pod: Manifest) -> bool:
    return TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ())


def failed(pod: Manifest, job: Manifest) -> bool:
    """A pod that is being deleted counts as failed at once, unless only failed pods are to be replaced."""
    if phase(pod) == "Failed":
        return True
    only_failed = job["spec"].get("podReplacementPolicy") == "Failed"
    return not only_failed and deleting(pod) and phase(pod) != "Succeeded"


def completion_index(pod: Manifest) -> int | None:
    text = str((pod["metadata"].get("annotations") or {}).get(INDEX_ANNOTATION, ""))
    return int(text) if text.isascii() and text.isdigit() else None


def controller_uid(manifest: Manifest) -> str | None:
    references: Iterable[Manifest] = manifest["metadata"].get("ownerReferences") or ()
    return next((str(one["uid"]) for one in references if one.get("controller")), None)


def controlling_job(pod: Manifest) -> Manifest | None:
    """Return the reference to the Job that owns the pod, if one does."""
    references: Iterable[Manifest] = pod["metadata"].get("ownerReferences") or ()
    return next((one for one in references if one.get("controller") and one["kind"] == "Job"), None)

"""What does kube-apiserver fill into a Job that leaves something out?

Completions and parallelism are both one only if both are absent; the selector and the four labels that tie pods to
their Job are made from the Job's uid and name when it is created, unless ``manualSelector`` is set. Functions fill in
place: they are given the writer's own copy.
"""

from typing import Any

from app.core.manifests import Manifest
from app.sandbox.batch.facts import CONTROLLER_UID_LABEL, JOB_NAME_LABEL
from app.sandbox.pods.defaults import drop_empty, fill_pod_spec

_NO_LIMIT = 2**31 - 1


def fill_job(job: Manifest) -> None:
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _default(spec, "parallelism", 1)
    _default(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _NO_LIMIT)
    _default(spec, "completionMode", "NonIndexed")
    _default(spec, "suspend", False)
    replacement = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    _default(spec, "podReplacementPolicy", replacement)
    _default(spec, "manualSelector", False)
    template = spec.setdefault("template", {})
    drop_empty(template.setdefault("metadata", {}))
    drop_empty(job["metadata"])
    fill_pod_spec(template.setdefault("spec", {}))


def fill_labels(job: Manifest) -> None:
    """A Job without labels has those of its template, the generated ones included."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def fill_selector(job: Manifest) -> None:
    """Tie the Job's pods to it; called once, when the Job has its uid and name."""
    spec, metadata = job["spec"], job["metadata"]
    if spec["manualSelector"]:
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for label in ("job-name", JOB_NAME_LABEL):
        labels.setdefault(label, metadata["name"])
    for label in ("controller-uid", CONTROLLER_UID_LABEL):
        labels.setdefault(label, metadata["uid"])
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(CONTROLLER_UID_LABEL, metadata["uid"])


def _default(spec: dict[str, Any], field: str, value: Any) -> None:
    if spec.get(field) is None:
        spec[field] = value

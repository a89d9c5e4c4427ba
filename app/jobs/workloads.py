"""Which Workload belongs to a job, and does an existing one still say the same as the job?

The name, the owner reference and the fields copied from the job follow Kueue's jobframework, so that a Workload made
here and one made by Kueue for the same job are the same object. Equality is Kueue's as well: owner, maximum execution
time and, pod set by pod set, counts, containers and (until admission) tolerations; node selectors, affinity, labels
and annotations are not compared. Quantities are compared by value, never by spelling.

Numbers of a priority class and defaults of a LimitRange need other objects; whoever stores the Workload fills them in.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.core import quantity
from app.core.manifests import Manifest
from app.jobs import labels
from app.jobs.identity import JobKind, annotation, label, number, queue_name

API_VERSION = "kueue.x-k8s.io/v1beta2"
_HASH_LENGTH = 5
_NAME_LENGTH = 253


def workload_name(kind: JobKind, name: str, uid: str) -> str:
    text = f"{kind.kind}\n{kind.group}\n{name}\n{uid}"
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    prefix = f"{kind.kind.lower()}-{name}"[: _NAME_LENGTH - _HASH_LENGTH - 1]
    return f"{prefix}-{digest}"


def workload_manifest(
    kind: JobKind, job: Manifest, pod_sets: Sequence[Manifest], priority_class: str | None = None
) -> Manifest:
    """The Workload to create for `job`. `priority_class` is a PriorityClass the job names outside its templates."""
    metadata = job["metadata"]
    spec: Manifest = {"podSets": list(pod_sets), "queueName": queue_name(job), "active": True}
    reference = _priority_class_ref(job, pod_sets, priority_class)
    if reference:
        spec["priorityClassRef"] = reference
    limit = _execution_limit(job)
    if limit is not None:
        spec["maximumExecutionTimeSeconds"] = limit
    meta: Manifest = {
        "name": workload_name(kind, metadata["name"], metadata["uid"]),
        "namespace": metadata["namespace"],
        "labels": {labels.JOB_UID: metadata["uid"]},
        "ownerReferences": [_owner_reference(kind, metadata)],
    }
    copied = _copied_annotations(job)
    if copied:
        meta["annotations"] = copied
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": meta, "spec": spec}


def _owner_reference(kind: JobKind, metadata: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _priority_class_ref(
    job: Manifest, pod_sets: Sequence[Manifest], named: str | None
) -> Manifest | None:
    """Kueue's order: the label, then the job's own field, then the first pod set that names a class."""
    own = label(job, labels.PRIORITY_CLASS)
    if own:
        return {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": own}
    of_pods = (entry["template"].get("spec", {}).get("priorityClassName") for entry in pod_sets)
    found = named or next(filter(None, of_pods), None)
    if found:
        return {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": found}
    return None


def _execution_limit(job: Manifest) -> int | None:
    return number(label(job, labels.MAX_EXEC_TIME)) or None


def _copied_annotations(job: Manifest) -> Manifest:
    annotations: Mapping[str, str] = job["metadata"].get("annotations") or {}
    copied = {k: v for k, v in annotations.items() if k.startswith(labels.PROVISIONING_PREFIX)}
    gates = annotation(job, labels.ADMISSION_GATED_BY)
    if gates:
        copied[labels.ADMISSION_GATED_BY] = gates
    return copied


def spec_hash(job: Manifest, pod_sets: Sequence[Manifest]) -> str:
    """A short name for everything of a job that its Workload was made from and that admission does not touch."""
    content = [_execution_limit(job), [_comparable(entry, tolerations=False) for entry in pod_sets]]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def equivalent(
    job: Manifest, pod_sets: Sequence[Manifest], workload: Manifest, *, suspended: bool
) -> bool:
    """Whether `workload` still describes `job`; if not, it must be updated or made anew."""
    if not _owned(job, workload):
        return False
    spec: Manifest = workload["spec"]
    if _execution_limit(job) != spec.get("maximumExecutionTimeSeconds"):
        return False
    status = workload.get("status") or {}
    admission = status.get("admission")
    if not admission:
        return _same(pod_sets, spec["podSets"], tolerations=True)
    running = _with_admitted_counts(spec["podSets"], admission)
    if _same(pod_sets, running, tolerations=False):
        return True
    return suspended and _same(pod_sets, spec["podSets"], tolerations=False)


def _owned(job: Manifest, workload: Manifest) -> bool:
    metadata = job["metadata"]
    return any(
        owner.get("name") == metadata["name"] and owner.get("uid") == metadata["uid"]
        for owner in workload["metadata"].get("ownerReferences") or ()
    )


def _with_admitted_counts(
    pod_sets: Sequence[Manifest], admission: Mapping[str, Any]
) -> list[Manifest]:
    """Only pod sets that may start smaller are told their size; the others may have been admitted with what is left."""
    counts = {item["name"]: item.get("count") for item in admission.get("podSetAssignments") or ()}
    return [
        {**entry, "count": counts.get(entry["name"]) or entry.get("count", 1)}
        if entry.get("minCount") is not None
        else entry
        for entry in pod_sets
    ]


def _same(ours: Sequence[Manifest], theirs: Sequence[Manifest], *, tolerations: bool) -> bool:
    return len(ours) == len(theirs) and all(
        _comparable(one, tolerations=tolerations) == _comparable(other, tolerations=tolerations)
        for one, other in zip(ours, theirs, strict=True)
    )


def _comparable(entry: Manifest, *, tolerations: bool) -> list[Any]:
    spec: Manifest = entry["template"].get("spec") or {}
    return [
        entry.get("count", 1),
        entry.get("minCount"),
        [_canonical(container) for container in spec.get("initContainers") or ()],
        [_canonical(container) for container in spec.get("containers") or ()],
        (spec.get("tolerations") or []) if tolerations else None,
    ]


def _canonical(container: Manifest) -> Manifest:
    """The container with its quantities as numbers, so that 1000Mi and 1048576000 are one amount."""
    resources = container.get("resources")
    if not resources:
        return {key: value for key, value in container.items() if key != "resources"}
    amounts = {
        key: {name: _amount(value) for name, value in (resources.get(key) or {}).items()}
        for key in ("limits", "requests")
    }
    return {**container, "resources": {**resources, **amounts}}


def _amount(value: Any) -> int | str:
    try:
        return quantity.parse(value).nanos
    except quantity.QuantityError:
        return str(value)

"""Which Workload noun does a manifest stand for, and how is an admission written back into one?

The reading covers what decisions depend on in spec *and* status: a workload with QuotaReserved and an admission holds
quota from the moment it is read, so that a restart needs no other memory than the manifests.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.core import pods, resources
from app.core.metadata import (
    Manifest,
    condition,
    is_deleting,
    is_true,
    moment,
    name_of,
    namespace_of,
    spec_of,
    status_of,
)
from app.core.model import Admission, PodSet, PodSetAdmission, Workload
from app.core.topology import read_assignment, read_request, write_assignment

_ADMISSION_GATE = "kueue.x-k8s.io/admission-gated-by"
_PRIORITY_CLASS_GROUP = "kueue.x-k8s.io"


def read_workload(manifest: Manifest) -> Workload:
    """Read spec and status; a reservation counts only together with its admission."""
    metadata, spec, status = manifest["metadata"], spec_of(manifest), status_of(manifest)
    reserved = condition(status, "QuotaReserved") or {}
    holds = reserved.get("status") == "True" and bool(status.get("admission"))
    requeued = condition(status, "Requeued")
    evicted = _when_true(condition(status, "Evicted"))
    admitted = _when_true(condition(status, "Admitted"))
    return Workload(
        uid=str(metadata.get("uid") or f"{namespace_of(manifest)}/{name_of(manifest)}"),
        namespace=namespace_of(manifest),
        name=name_of(manifest),
        queue_name=spec.get("queueName") or "",
        created_at=moment(metadata.get("creationTimestamp") or "1970-01-01T00:00:00Z"),
        priority=int(spec.get("priority") or 0),
        priority_class=_priority_class(spec.get("priorityClassRef") or {}),
        active=spec.get("active", True) is not False,
        pod_sets=tuple(_pod_set(item) for item in spec.get("podSets") or ()),
        generation=int(metadata.get("generation") or 0),
        admission=read_admission(status["admission"]) if holds else None,
        reserved_at=moment(reserved["lastTransitionTime"]) if holds else None,
        admitted=bool(admitted),
        admitted_at=_moment(admitted.get("lastTransitionTime")),
        ready=is_true(status, "PodsReady"),
        finished=is_true(status, "Finished"),
        evicted=evicted.get("reason"),
        evicted_at=_moment(evicted.get("lastTransitionTime")),
        requeued=None if requeued is None else requeued["status"] == "True",
        requeue_at=_moment((status.get("requeueState") or {}).get("requeueAt")),
        reclaimable={
            item["name"]: int(item.get("count") or 0)
            for item in status.get("reclaimablePods") or ()
        },
        blocked_checks=tuple(
            check["name"]
            for check in status.get("admissionChecks") or ()
            if check.get("state") in ("Retry", "Rejected")
        ),
        gated=_is_gated(metadata, reserved),
        preemption_gated=_is_preemption_gated(spec, status),
        deleting=is_deleting(manifest),
    )


def read_admission(admission: Mapping[str, Any]) -> Admission:
    return Admission(
        cluster_queue=admission["clusterQueue"],
        pod_sets=tuple(
            PodSetAdmission(
                name=item.get("name") or "main",
                count=int(item.get("count") or 0),
                flavors=dict(item.get("flavors") or {}),
                usage={
                    name: resources.amount(name, text)
                    for name, text in (item.get("resourceUsage") or {}).items()
                },
                topology=read_assignment(item["topologyAssignment"])
                if item.get("topologyAssignment")
                else None,
            )
            for item in admission.get("podSetAssignments") or ()
        ),
    )


def write_admission(admission: Admission) -> Manifest:
    """The ``status.admission`` of a manifest."""
    return {
        "clusterQueue": admission.cluster_queue,
        "podSetAssignments": [_pod_set_assignment(one) for one in admission.pod_sets],
    }


def _pod_set_assignment(one: PodSetAdmission) -> Manifest:
    written: Manifest = {
        "name": one.name,
        "flavors": dict(sorted(one.flavors.items())),
        "resourceUsage": {
            name: resources.written(name, value) for name, value in sorted(one.usage.items())
        },
        "count": one.count,
    }
    if one.topology is not None:
        written["topologyAssignment"] = write_assignment(one.topology)
    return written


def _pod_set(item: Mapping[str, Any]) -> PodSet:
    request = item.get("topologyRequest") or {}
    return PodSet(
        name=item.get("name") or "main",
        count=int(item.get("count", 1)),
        min_count=item.get("minCount"),
        shape=pods.shape(item.get("template") or {}),
        topology=read_request(request),
        group=request.get("podSetGroupName"),
    )


def _priority_class(reference: Mapping[str, Any]) -> str | None:
    return reference.get("name") if reference.get("group") == _PRIORITY_CLASS_GROUP else None


def _is_gated(metadata: Mapping[str, Any], reserved: Mapping[str, Any]) -> bool:
    gates = (metadata.get("annotations") or {}).get(_ADMISSION_GATE)
    return bool(gates) or reserved.get("reason") == "OnHold"


def _is_preemption_gated(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """A gate that was never opened is closed."""
    opened = {
        gate["name"]
        for gate in status.get("preemptionGates") or ()
        if gate.get("position") == "Open"
    }
    return any(gate["name"] not in opened for gate in spec.get("preemptionGates") or ())


def _when_true(found: Manifest | None) -> Manifest:
    return found if found is not None and found["status"] == "True" else {}


def _moment(text: str | None) -> datetime | None:
    return None if text is None else moment(text)

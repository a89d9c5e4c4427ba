"""Small legal objects of every kind, and a way to make them wrong in one place."""

import copy
import re
from typing import Any

from app.core.manifests import Manifest
from app.errors import FieldError, Invalid
from app.intake.kinds import DEFINITIONS

API_VERSION = "kueue.x-k8s.io/v1beta2"
NOW = "2026-01-31T12:00:00Z"

GONE: Any = object()


def manifest(kind: str, name: str = "sample", **parts: Any) -> Manifest:
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **parts}


def quota(name: str = "cpu", nominal: Any = "10", **limits: Any) -> dict[str, Any]:
    return {"name": name, "nominalQuota": nominal, **limits}


def group(*flavors: str, resources: tuple[str, ...] = ("cpu",)) -> dict[str, Any]:
    return {
        "coveredResources": list(resources),
        "flavors": [
            {"name": flavor, "resources": [quota(resource) for resource in resources]}
            for flavor in flavors
        ],
    }


def cluster_queue(**spec: Any) -> Manifest:
    base = {"namespaceSelector": {}, "resourceGroups": [group("spot", "reserved")]}
    return manifest("ClusterQueue", spec={**base, **spec})


def cohort(**spec: Any) -> Manifest:
    return manifest("Cohort", spec=spec)


def local_queue(**spec: Any) -> Manifest:
    metadata = {"namespace": "team-a"}
    return manifest("LocalQueue", metadata=metadata, spec={"clusterQueue": "research", **spec})


def flavor(**spec: Any) -> Manifest:
    return manifest("ResourceFlavor", spec=spec)


def topology(*levels: str) -> Manifest:
    return manifest("Topology", spec={"levels": [{"nodeLabel": level} for level in levels]})


def admission_check(**spec: Any) -> Manifest:
    return manifest("AdmissionCheck", spec={"controllerName": "example.com/budget", **spec})


def priority_class(value: Any = 100, **fields: Any) -> Manifest:
    return manifest("WorkloadPriorityClass", value=value, **fields)


def pod_set(name: str = "main", *, count: int = 3, **fields: Any) -> dict[str, Any]:
    container = {"name": "trainer", "resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}
    return {
        "name": name,
        "count": count,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        **fields,
    }


def workload(*pod_sets: dict[str, Any], status: Any = None, **spec: Any) -> Manifest:
    metadata = {"namespace": "team-a", "uid": "w-1", "creationTimestamp": NOW}
    listed = list(pod_sets) or [pod_set()]
    parts: dict[str, Any] = {"spec": {"queueName": "main", "podSets": listed, **spec}}
    if status is not None:
        parts["status"] = status
    return manifest("Workload", metadata=metadata, **parts)


def condition(kind: str, status: str = "True", **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": kind,
        "message": "",
        "lastTransitionTime": NOW,
        **fields,
    }


def reserved(*pod_sets: dict[str, Any], **spec: Any) -> Manifest:
    """A workload that holds quota and is admitted."""
    listed = list(pod_sets) or [pod_set()]
    assignments = [
        {
            "name": item["name"],
            "count": item["count"],
            "flavors": {"cpu": "spot"},
            "resourceUsage": {"cpu": str(item["count"])},
        }
        for item in listed
    ]
    status = {
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
        "admission": {"clusterQueue": "research", "podSetAssignments": assignments},
    }
    return workload(*listed, status=status, **spec)


def edited(base: Manifest, path: str, value: Any) -> Manifest:
    """A copy with the value at that path replaced, or taken out if it is `GONE`."""
    out = copy.deepcopy(base)
    *way, last = [
        int(index) if index else name
        for index, name in re.findall(r"\[([0-9]+)\]|([^.\[\]]+(?:\.[a-z0-9.-]+/[a-z-]+)?)", path)
    ]
    node: Any = out
    for step in way:
        node = node.setdefault(step, {}) if isinstance(node, dict) else node[step]
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return out


def prepared(new: Manifest, old: Manifest | None = None) -> Manifest:
    return DEFINITIONS[new["kind"]].prepare(new, old)


def faults(new: Manifest, old: Manifest | None = None) -> tuple[FieldError, ...]:
    """What is refused about it; nothing if it is accepted."""
    try:
        prepared(new, old)
    except Invalid as error:
        return error.causes
    return ()


def told(new: Manifest, old: Manifest | None = None) -> list[tuple[str, str]]:
    """Paths and reasons of what is refused."""
    return [(fault.path, fault.reason) for fault in faults(new, old)]

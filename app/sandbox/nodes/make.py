"""What does a simulated node look like?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.core.manifests import Manifest
from app.sandbox.times import stamp

CAPACITY: Mapping[str, str] = {"cpu": "64", "memory": "512Gi", "pods": "110"}

_INFO = {
    "architecture": "amd64",
    "containerRuntimeVersion": "sluice-sandbox://1",
    "kernelVersion": "simulated",
    "kubeletVersion": "v1.37.2",
    "operatingSystem": "linux",
    "osImage": "Sluice sandbox",
}
_HEALTHY = ("MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """Nodes of one sort; what `capacity` does not name is taken from `CAPACITY`."""

    count: int
    prefix: str = "node"
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, Any] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()


def node_manifests(shape: NodeShape, first: int = 0) -> list[Manifest]:
    """Return the nodes of a shape, numbered from `first`."""
    names = [f"{shape.prefix}-{number:03d}" for number in range(first, first + shape.count)]
    return [_node(name, shape) for name in names]


def _node(name: str, shape: NodeShape) -> Manifest:
    given = {key: str(value) for key, value in {**CAPACITY, **shape.capacity}.items()}
    spec: dict[str, Any] = {}
    if shape.taints:
        spec["taints"] = [dict(taint) for taint in shape.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **shape.labels},
        },
        "spec": spec,
        "status": {"capacity": given, "allocatable": dict(given)},
    }


def node_status(node: Manifest, *, ready: bool, now: datetime) -> Manifest:
    """Return the node's status with a kubelet's heartbeat in it; equal if nothing changes."""
    status = dict(node.get("status") or {})
    capacity = status.setdefault("capacity", dict(CAPACITY))
    status.setdefault("allocatable", capacity)
    status.setdefault("nodeInfo", _INFO)
    status.setdefault("addresses", [{"type": "Hostname", "address": node["metadata"]["name"]}])
    wanted = {"Ready": ready, **dict.fromkeys(_HEALTHY, False)}
    known = {one["type"]: one for one in status.get("conditions") or ()}
    status["conditions"] = [
        _condition(kind, "True" if holds else "False", known.get(kind), now)
        for kind, holds in wanted.items()
    ]
    return status


def _condition(kind: str, value: str, known: Manifest | None, now: datetime) -> Manifest:
    if known is not None and known["status"] == value:
        return known
    reason = {"True": "KubeletReady", "False": "KubeletNotReady"}[value]
    if kind != "Ready":
        reason = f"KubeletHas{'' if value == 'True' else 'No'}{kind}"
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": f"the simulated kubelet says {kind} is {value}",
        "lastHeartbeatTime": stamp(now),
        "lastTransitionTime": stamp(now),
    }

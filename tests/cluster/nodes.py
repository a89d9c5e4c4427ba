"""What do the machines of a test cluster look like?

A node here is an object and nothing more: this module writes its labels and what it has to offer, and kwok keeps it
Ready (see ``stages.yaml``). The numbers are real to the scheduler, which fills the nodes up as it would any others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.admin import has_condition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.cluster.admin import Admin, Object

#: A machine with eight accelerators, as they are sold.
GPU_NODE: Mapping[str, str] = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}


def node(
    name: str,
    capacity: Mapping[str, str] = GPU_NODE,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Object:
    """Describe a node; everything that it has is allocatable."""
    standard = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": standard | dict(labels or {})},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": dict(capacity), "allocatable": dict(capacity)},
    }


def create_nodes(admin: Admin, nodes: Sequence[Object], timeout_s: float = 60) -> None:
    """Create the nodes and wait until pods can be placed on every one of them."""
    for each in nodes:
        admin.post("/api/v1/nodes", each)
    names = {each["metadata"]["name"] for each in nodes}

    def all_open(listed: Object) -> bool:
        return names <= {found["metadata"]["name"] for found in listed["items"] if is_open(found)}

    admin.wait_for("/api/v1/nodes", all_open, timeout_s)


def is_open(found: Object) -> bool:
    """Tell whether a node is Ready and the taint that every new node gets has been taken off it."""
    taints = found["spec"].get("taints", [])
    return has_condition(found, "Ready") and not any(
        taint["key"] == "node.kubernetes.io/not-ready" for taint in taints
    )


def break_node(admin: Admin, name: str) -> None:
    """Make a node NotReady, and wait for that; its pods are evicted when they no longer tolerate it."""
    _set_broken(admin, name, "true")
    admin.wait_for(f"/api/v1/nodes/{name}", lambda found: has_condition(found, "Ready", "False"))


def mend_node(admin: Admin, name: str) -> None:
    """Make a broken node Ready again, and wait until pods can be placed on it."""
    _set_broken(admin, name, None)
    admin.wait_for(f"/api/v1/nodes/{name}", is_open)


def _set_broken(admin: Admin, name: str, value: str | None) -> None:
    admin.patch(
        f"/api/v1/nodes/{name}", {"metadata": {"annotations": {"sluice.dev/broken": value}}}
    )

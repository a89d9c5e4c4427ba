"""Does a pod fit on a node, and if not, why?

Node selector and required node affinity, taints and tolerations, and what the pods already there leave of the node's
allocatable. Reasons are worded as kube-scheduler words them. Pure; `Room` is a value that its holder keeps up to date.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core import pods as core_pods
from app.core import resources
from app.core.manifests import Manifest
from app.core.model import PodShape
from app.core.selectors import Requirement, Taint

_SELECTOR = "node(s) didn't match Pod's node affinity/selector"
_TAINT = "node(s) had untolerated taint(s)"
_UNSCHEDULABLE = "node(s) were unschedulable"
_NOT_READY = "node(s) were not ready"


@dataclass(slots=True)
class Room:
    """A node and what its pods take of it."""

    node: Manifest
    used: dict[str, int] = field(default_factory=dict)
    allocatable: dict[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()

    @classmethod
    def of(cls, node: Manifest, used: dict[str, int]) -> "Room":
        status = node.get("status") or {}
        given = status.get("allocatable") or status.get("capacity") or {}
        taints = (node.get("spec") or {}).get("taints") or ()
        return cls(
            node=node,
            used=used,
            allocatable={name: resources.amount(name, text) for name, text in given.items()},
            labels=node["metadata"].get("labels") or {},
            taints=tuple(
                Taint(key=one["key"], effect=one["effect"], value=one.get("value") or "")
                for one in taints
            ),
        )

    def take(self, requests: Mapping[str, int]) -> None:
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) + amount

    def give_back(self, requests: Mapping[str, int]) -> None:
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) - amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a pod asks of a node."""

    shape: PodShape
    requests: Mapping[str, int]
    affinity: tuple[tuple[tuple[Requirement, ...], tuple[Requirement, ...]], ...] | None
    #: Pods with equal digests fit on the same nodes.
    digest: str

    @classmethod
    def of(cls, pod: Manifest) -> "Wish":
        spec = {key: value for key, value in pod["spec"].items() if key in _DECIDING}
        shape = core_pods.shape({"spec": spec})
        requests = {**shape.requests, resources.PODS: 1}
        return cls(shape=shape, requests=requests, affinity=_affinity(spec), digest=shape.digest)


_DECIDING = (
    "affinity",
    "containers",
    "initContainers",
    "nodeSelector",
    "overhead",
    "resources",
    "tolerations",
)


def refusals(wish: Wish, room: Room) -> list[str]:
    """Return why the pod cannot go there; nothing if it can."""
    if (room.node.get("spec") or {}).get("unschedulable"):
        return [_UNSCHEDULABLE]
    if not _is_ready(room.node):
        return [_NOT_READY]
    if not _selected(wish, room):
        return [_SELECTOR]
    if not _tolerated(wish, room):
        return [_TAINT]
    return [
        f"Insufficient {name}" if name != resources.PODS else "Too many pods"
        for name, amount in wish.requests.items()
        if amount > room.allocatable.get(name, 0) - room.used.get(name, 0) and amount
    ]


def summary(nodes: int, reasons: Iterable[str]) -> str:
    """Word the outcome for all nodes in the way of kube-scheduler."""
    counted = sorted(f"{count} {reason}" for reason, count in Counter(reasons).items())
    told = f" {', '.join(counted)}." if counted else ""
    return f"0/{nodes} nodes are available:{told}"


def _is_ready(node: Manifest) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return all(one["status"] == "True" for one in conditions if one["type"] == "Ready")


def _selected(wish: Wish, room: Room) -> bool:
    wanted = wish.shape.node_selector
    if any(room.labels.get(key) != value for key, value in wanted.items()):
        return False
    if wish.affinity is None:
        return True
    fields = {"metadata.name": room.node["metadata"]["name"]}
    return any(
        all(one.matches(room.labels) for one in labels)
        and all(one.matches(fields) for one in names)
        for labels, names in wish.affinity
        if labels or names
    )


def _tolerated(wish: Wish, room: Room) -> bool:
    return all(
        any(toleration.tolerates(taint) for toleration in wish.shape.tolerations)
        for taint in room.taints
        if taint.keeps_out
    )


def _affinity(
    spec: Mapping[str, Any],
) -> tuple[tuple[tuple[Requirement, ...], tuple[Requirement, ...]], ...] | None:
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return None
    return tuple(
        (
            core_pods.requirements(term.get("matchExpressions")),
            core_pods.requirements(term.get("matchFields")),
        )
        for term in required.get("nodeSelectorTerms") or ()
    )

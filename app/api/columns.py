"""What `kubectl get` prints of our kinds: Kueue's columns first, and with ``-o wide`` what we would look for next.

Cells read the stored manifest and never fail on what is absent: a status may not have been written yet.
"""

from collections.abc import Callable
from typing import Any

from app.apiserver.kinds import AGE, Column
from app.core.manifests import Manifest

Cell = Callable[[Manifest], Any]


def _at(*path: str) -> Cell:
    """The value under a path of fields; None when any of them is absent."""

    def cell(manifest: Manifest) -> Any:
        value: Any = manifest
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return cell


def _count(*path: str) -> Cell:
    """A counter; 0 until the first status is written."""
    read = _at(*path)
    return lambda manifest: read(manifest) or 0


def _condition(kind: str, field: str = "status") -> Cell:
    """A field of a condition; None when the condition is absent."""

    def cell(manifest: Manifest) -> Any:
        conditions = _at("status", "conditions")(manifest) or ()
        return next((found.get(field) for found in conditions if found.get("type") == kind), None)

    return cell


def _pairs(*path: str) -> Cell:
    """A map as ``a=b,c=d``."""
    read = _at(*path)
    return lambda manifest: ",".join(
        f"{key}={value}" for key, value in (read(manifest) or {}).items()
    )


def _flavors(manifest: Manifest) -> str:
    groups = _at("spec", "resourceGroups")(manifest) or ()
    return ",".join(flavor["name"] for group in groups for flavor in group.get("flavors", ()))


def _levels(manifest: Manifest) -> str:
    levels = _at("spec", "levels")(manifest) or ()
    return ",".join(level["nodeLabel"] for level in levels)


def _pods(manifest: Manifest) -> int:
    pod_sets = _at("spec", "podSets")(manifest) or ()
    return sum(pod_set.get("count", 1) for pod_set in pod_sets)


def _why_waiting(manifest: Manifest) -> str | None:
    """The reason of an unfinished workload without quota."""
    if (
        _condition("QuotaReserved")(manifest) == "True"
        or _condition("Finished")(manifest) == "True"
    ):
        return None
    reason: str | None = _condition("QuotaReserved", "reason")(manifest)
    return reason


def _integer(name: str, cell: Cell, description: str, *, wide: bool = False) -> Column:
    return Column(name=name, cell=cell, type="integer", priority=int(wide), description=description)


def _text(name: str, cell: Cell, description: str, *, wide: bool = False) -> Column:
    return Column(name=name, cell=cell, priority=int(wide), description=description)


_WAITING = "How many workloads wait."
_ADMITTED = "How many workloads are admitted and not finished."

CLUSTER_QUEUE = (
    _text("Cohort", _at("spec", "cohortName"), "Cohort it borrows from and lends to."),
    _text("Strategy", _at("spec", "queueingStrategy"), "Order of its workloads.", wide=True),
    _integer("Pending Workloads", _count("status", "pendingWorkloads"), _WAITING),
    _integer("Admitted Workloads", _count("status", "admittedWorkloads"), _ADMITTED, wide=True),
    _text("Active", _condition("Active"), "Whether it admits workloads.", wide=True),
    _text("Reason", _condition("Active", "reason"), "Why it does or does not.", wide=True),
    _text("Flavors", _flavors, "Flavors in the order they are tried.", wide=True),
    AGE,
)

COHORT = (
    _text("Parent", _at("spec", "parentName"), "Cohort above this one."),
    _text("Flavors", _flavors, "Flavors the cohort itself has quota for.", wide=True),
    _integer("Share", _at("status", "fairSharing", "weightedShare"), "Weighted share.", wide=True),
    AGE,
)

LOCAL_QUEUE = (
    _text("ClusterQueue", _at("spec", "clusterQueue"), "ClusterQueue whose quota it uses."),
    _integer("Pending Workloads", _count("status", "pendingWorkloads"), _WAITING),
    _integer("Admitted Workloads", _count("status", "admittedWorkloads"), _ADMITTED),
    _text("Active", _condition("Active"), "Whether its workloads can be admitted.", wide=True),
    _text("Reason", _condition("Active", "reason"), "Why they can or cannot.", wide=True),
    AGE,
)

WORKLOAD = (
    _text("Queue", _at("spec", "queueName"), "LocalQueue it was submitted to."),
    _text("Reserved in", _at("status", "admission", "clusterQueue"), "Where it holds quota."),
    _text("Admitted", _condition("Admitted"), "Whether it is admitted."),
    _text("Finished", _condition("Finished"), "Whether it has ended."),
    AGE,
    _integer("Priority", _count("spec", "priority"), "Higher goes first.", wide=True),
    _integer("Pods", _pods, "How many pods it wants.", wide=True),
    _text("Waiting for", _why_waiting, "Why it has no quota yet.", wide=True),
)

RESOURCE_FLAVOR = (
    _text("Node labels", _pairs("spec", "nodeLabels"), "Labels of its nodes.", wide=True),
    _text("Topology", _at("spec", "topologyName"), "How its nodes are nested.", wide=True),
    AGE,
)

WORKLOAD_PRIORITY_CLASS = (
    _integer("Value", _at("value"), "The priority it stands for."),
    AGE,
)

ADMISSION_CHECK = (
    _text("Controller", _at("spec", "controllerName"), "Who answers it."),
    _text("Active", _condition("Active"), "Whether it is usable."),
    AGE,
)

TOPOLOGY = (_text("Levels", _levels, "Node labels, widest first."), AGE)

"""Which objects are there, and which lead to which?

The plain memory of an image: every noun under its kind and name, and the questions that need no quota - the
ClusterQueue behind a LocalQueue, whether a queue is served at all, whether it admits a namespace.
"""

from collections.abc import Mapping
from typing import Any

from app.core.model import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    Namespace,
    Node,
    Noun,
    ResourceFlavor,
    StopPolicy,
    Topology,
    Workload,
    WorkloadPriorityClass,
)

Key = tuple[str, str]  # namespace, name


class Objects:
    def __init__(self) -> None:
        self.flavors: dict[str, ResourceFlavor] = {}
        self.cluster_queues: dict[str, ClusterQueue] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.local_queues: dict[Key, LocalQueue] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.priority_classes: dict[str, WorkloadPriorityClass] = {}
        self.checks: dict[str, AdmissionCheck] = {}
        self.topologies: dict[str, Topology] = {}
        self.nodes: dict[str, Node] = {}
        self.workloads: dict[Key, Workload] = {}
        self._shelves: Mapping[str, dict[Any, Any]] = {
            "ResourceFlavor": self.flavors,
            "ClusterQueue": self.cluster_queues,
            "Cohort": self.cohorts,
            "LocalQueue": self.local_queues,
            "Namespace": self.namespaces,
            "WorkloadPriorityClass": self.priority_classes,
            "AdmissionCheck": self.checks,
            "Topology": self.topologies,
            "Node": self.nodes,
            "Workload": self.workloads,
        }
        self.edits = 0  # of anything but workloads and nodes
        self._inactive: dict[str, str | None] = {}  # memo of `why_inactive`

    def find(self, kind: str, namespace: str | None, name: str) -> Noun | None:
        """The noun of that kind and name; of a kind that no decision depends on there is none."""
        noun: Noun | None = self._shelves.get(kind, {}).get(_key(kind, namespace, name))
        return noun

    def keep(self, noun: Noun) -> bool:
        """Remember a noun; False when it was known just so."""
        kind = type(noun).__name__
        shelf, key = self._shelves[kind], _key(kind, getattr(noun, "namespace", None), noun.name)
        if shelf.get(key) == noun:
            return False
        shelf[key] = noun
        self._note_edit(noun)
        return True

    def drop(self, noun: Noun) -> None:
        kind = type(noun).__name__
        del self._shelves[kind][_key(kind, getattr(noun, "namespace", None), noun.name)]
        self._note_edit(noun)

    def queue_of(self, workload: Workload) -> ClusterQueue | None:
        """The ClusterQueue that a workload's LocalQueue leads to, if both exist."""
        local = self.local_queues.get(door(workload))
        return None if local is None else self.cluster_queues.get(local.cluster_queue)

    def admits_namespace(self, queue: ClusterQueue, namespace: str) -> bool:
        """A namespace nobody told us about still carries its own name as a label."""
        known = self.namespaces.get(namespace)
        labels = known.labels if known else {"kubernetes.io/metadata.name": namespace}
        selector = queue.namespace_selector
        return selector is not None and selector.matches(labels)

    def why_inactive(self, name: str) -> str | None:
        """The reason of Active=False of a ClusterQueue, or None while it is served."""
        if name not in self._inactive:
            self._inactive[name] = self._why_inactive(self.cluster_queues[name])
        return self._inactive[name]

    def waiting_room(self, workload: Workload) -> str | None:
        """The ClusterQueue in whose line a workload may stand, or None while it may stand in none."""
        is_out = workload.finished or workload.gated or workload.deleting or not workload.active
        if is_out or workload.admission is not None:
            return None
        local = self.local_queues.get(door(workload))
        if local is None or local.deleting or local.stop_policy is not StopPolicy.NONE:
            return None
        return local.cluster_queue if local.cluster_queue in self.cluster_queues else None

    def users_of(self, noun: ResourceFlavor | AdmissionCheck) -> list[str]:
        """The queues that name a flavor or a check."""
        if isinstance(noun, ResourceFlavor):
            return [q.name for q in self.cluster_queues.values() if noun.name in flavors_of(q)]
        return [
            queue.name
            for queue in self.cluster_queues.values()
            if any(rule.name == noun.name for rule in queue.checks)
        ]

    def queues_on(self, node: Node | None) -> list[str]:
        """The queues with a flavor that places pods on such a node, or on any."""
        flavors = {
            flavor.name
            for flavor in self.flavors.values()
            if flavor.topology_name is not None
            and (node is None or flavor.node_labels.items() <= node.labels.items())
        }
        return [q.name for q in self.cluster_queues.values() if flavors.intersection(flavors_of(q))]

    def _note_edit(self, noun: Noun) -> None:
        if not isinstance(noun, Workload | Node):
            self.edits += 1
            self._inactive.clear()

    def _why_inactive(self, queue: ClusterQueue) -> str | None:
        """The first that holds, in Kueue's order."""
        flavors = [self.flavors.get(flavor) for flavor in flavors_of(queue)]
        checks = [self.checks.get(rule.name) for rule in queue.checks]
        topologies = [flavor.topology_name for flavor in flavors if flavor is not None]
        causes = {
            "Terminating": queue.deleting,
            "Stopped": queue.stop_policy is not StopPolicy.NONE,
            "FlavorNotFound": None in flavors,
            "AdmissionCheckNotFound": None in checks,
            "AdmissionCheckInactive": not all(check is None or check.active for check in checks),
            "TopologyNotFound": any(name and name not in self.topologies for name in topologies),
        }
        return next((cause for cause, holds in causes.items() if holds), None)


def door(workload: Workload) -> Key:
    """The LocalQueue it was sent to."""
    return (workload.namespace, workload.queue_name)


def flavors_of(queue: ClusterQueue) -> list[str]:
    return [flavor for group in queue.groups for flavor in group.flavors]


def _key(kind: str, namespace: str | None, name: str) -> Any:
    return (namespace or "default", name) if kind in ("Workload", "LocalQueue") else name

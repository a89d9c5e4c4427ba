"""Which noun does a v1beta2 manifest stand for?

`parse` reads a manifest as it is stored or as a user wrote it: Kueue's defaults are filled in for what is absent, and
what no decision depends on is left behind. It trusts the shape that the API's validation guarantees; a quantity that
is none raises ``QuantityError``, an unknown kind ``ValueError``. Writing into manifests is ``lifecycle``'s business.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from app.core import pods, resources
from app.core.metadata import (
    Manifest,
    is_deleting,
    is_true,
    moment,
    name_of,
    namespace_of,
    spec_of,
    status_of,
)
from app.core.model import (
    AdmissionCheck,
    CheckRule,
    ClusterQueue,
    Cohort,
    Fungibility,
    FungibilityPolicy,
    FungibilityPreference,
    LocalQueue,
    Namespace,
    Node,
    Noun,
    Preemption,
    PreemptionPolicy,
    QueueingStrategy,
    Quota,
    ResourceFlavor,
    ResourceGroup,
    StopPolicy,
    Topology,
    WorkloadPriorityClass,
)
from app.core.quantity import parse as parse_quantity
from app.core.resources import FlavorResource
from app.core.selectors import LabelSelector, Requirement, Taint
from app.core.workloads import read_workload

_USAGE_BASED = "UsageBasedAdmissionFairSharing"

__all__ = ["Manifest", "parse"]


def parse(manifest: Manifest) -> Noun:
    """Read any manifest the core knows, by its kind."""
    kind = manifest.get("kind", "")
    reader = _READERS.get(kind)
    if reader is None:
        raise ValueError(f"No decision depends on objects of kind {kind!r}.")
    return reader(manifest)


def _resource_flavor(manifest: Manifest) -> ResourceFlavor:
    spec = spec_of(manifest)
    return ResourceFlavor(
        name=name_of(manifest),
        node_labels=dict(spec.get("nodeLabels") or {}),
        taints=_taints(spec.get("nodeTaints")),
        tolerations=pods.tolerations(spec.get("tolerations")),
        topology_name=spec.get("topologyName"),
    )


def _cluster_queue(manifest: Manifest) -> ClusterQueue:
    spec = spec_of(manifest)
    groups = spec.get("resourceGroups") or ()
    return ClusterQueue(
        name=name_of(manifest),
        cohort=spec.get("cohortName") or None,
        groups=tuple(_group(group) for group in groups),
        quotas=_quotas(groups),
        strategy=QueueingStrategy(spec.get("queueingStrategy") or "BestEffortFIFO"),
        namespace_selector=_label_selector(spec.get("namespaceSelector")),
        fungibility=_fungibility(spec.get("flavorFungibility") or {}),
        preemption=_preemption(spec.get("preemption") or {}),
        stop_policy=StopPolicy(spec.get("stopPolicy") or "None"),
        weight_nanos=_weight(spec),
        checks=tuple(
            CheckRule(name=item["name"], flavors=frozenset(item.get("onFlavors") or ()))
            for item in (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
        ),
        usage_based=(spec.get("admissionScope") or {}).get("admissionMode") == _USAGE_BASED,
        deleting=is_deleting(manifest),
    )


def _cohort(manifest: Manifest) -> Cohort:
    spec = spec_of(manifest)
    return Cohort(
        name=name_of(manifest),
        parent=spec.get("parentName") or None,
        quotas=_quotas(spec.get("resourceGroups") or ()),
        weight_nanos=_weight(spec),
    )


def _group(group: Mapping[str, Any]) -> ResourceGroup:
    return ResourceGroup(
        resources=tuple(group.get("coveredResources") or ()),
        flavors=tuple(flavor["name"] for flavor in group.get("flavors") or ()),
    )


def _quotas(groups: Iterable[Mapping[str, Any]]) -> dict[FlavorResource, Quota]:
    return {
        FlavorResource(flavor["name"], item["name"]): _quota(item)
        for group in groups
        for flavor in group.get("flavors") or ()
        for item in flavor.get("resources") or ()
    }


def _quota(item: Mapping[str, Any]) -> Quota:
    def limit(field: str) -> int | None:
        text = item.get(field)
        return None if text is None else resources.quota(item["name"], text)

    return Quota(
        nominal=limit("nominalQuota") or 0,
        borrowing_limit=limit("borrowingLimit"),
        lending_limit=limit("lendingLimit"),
    )


def _fungibility(spec: Mapping[str, Any]) -> Fungibility:
    return Fungibility(
        when_can_borrow=_flavor_policy(spec.get("whenCanBorrow"), "MayStopSearch"),
        when_can_preempt=_flavor_policy(spec.get("whenCanPreempt"), "TryNextFlavor"),
        preference=FungibilityPreference(spec.get("preference") or "BorrowingOverPreemption"),
    )


def _flavor_policy(text: str | None, default: str) -> FungibilityPolicy:
    """v1beta1 said Borrow and Preempt where v1beta2 says MayStopSearch."""
    text = text or default
    return FungibilityPolicy("MayStopSearch" if text in ("Borrow", "Preempt") else text)


def _preemption(spec: Mapping[str, Any]) -> Preemption:
    borrow = spec.get("borrowWithinCohort") or {}
    return Preemption(
        within_cluster_queue=PreemptionPolicy(spec.get("withinClusterQueue") or "Never"),
        reclaim_within_cohort=PreemptionPolicy(spec.get("reclaimWithinCohort") or "Never"),
        borrow_within_cohort=PreemptionPolicy(borrow.get("policy") or "Never"),
        max_priority_threshold=borrow.get("maxPriorityThreshold"),
    )


def _weight(spec: Mapping[str, Any]) -> int:
    weight = (spec.get("fairSharing") or {}).get("weight")
    return 10**9 if weight is None else parse_quantity(weight).nanos


def _label_selector(selector: Mapping[str, Any] | None) -> LabelSelector | None:
    if selector is None:
        return None
    labels = tuple(
        Requirement(key=key, operator="In", values=(value,))
        for key, value in sorted((selector.get("matchLabels") or {}).items())
    )
    return LabelSelector(requirements=labels + pods.requirements(selector.get("matchExpressions")))


def _local_queue(manifest: Manifest) -> LocalQueue:
    spec = spec_of(manifest)
    sharing = status_of(manifest).get("fairSharing") or {}
    past = sharing.get("admissionFairSharingStatus") or {}
    return LocalQueue(
        namespace=namespace_of(manifest),
        name=name_of(manifest),
        cluster_queue=spec.get("clusterQueue") or "",
        stop_policy=StopPolicy(spec.get("stopPolicy") or "None"),
        weight_nanos=_weight(spec),
        consumed={
            name: parse_quantity(text).nanos
            for name, text in (past.get("consumedResources") or {}).items()
        },
        consumed_at=moment(past["lastUpdate"]) if past.get("lastUpdate") else None,
        deleting=is_deleting(manifest),
    )


def _namespace(manifest: Manifest) -> Namespace:
    """Every namespace carries its own name as a label, as Kubernetes guarantees."""
    name = name_of(manifest)
    labels = dict(manifest["metadata"].get("labels") or {})
    return Namespace(name=name, labels={"kubernetes.io/metadata.name": name, **labels})


def _priority_class(manifest: Manifest) -> WorkloadPriorityClass:
    return WorkloadPriorityClass(name=name_of(manifest), value=int(manifest.get("value") or 0))


def _admission_check(manifest: Manifest) -> AdmissionCheck:
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    active = any(c["type"] == "Active" and c["status"] == "True" for c in conditions)
    return AdmissionCheck(name=name_of(manifest), active=active)


def _topology(manifest: Manifest) -> Topology:
    levels = spec_of(manifest).get("levels") or ()
    return Topology(name=name_of(manifest), levels=tuple(level["nodeLabel"] for level in levels))


def _node(manifest: Manifest) -> Node:
    """Ready, and not cordoned: as far as a pod can start there."""
    spec, status = spec_of(manifest), status_of(manifest)
    return Node(
        name=name_of(manifest),
        labels=dict(manifest["metadata"].get("labels") or {}),
        taints=_taints(spec.get("taints")),
        allocatable={
            name: resources.amount(name, text)
            for name, text in (status.get("allocatable") or {}).items()
        },
        ready=is_true(status, "Ready") and not spec.get("unschedulable"),
    )


def _taints(items: Iterable[Mapping[str, Any]] | None) -> tuple[Taint, ...]:
    return tuple(
        Taint(key=item["key"], effect=item["effect"], value=item.get("value") or "")
        for item in items or ()
    )


_READERS: Mapping[str, Callable[[Manifest], Noun]] = {
    "ResourceFlavor": _resource_flavor,
    "ClusterQueue": _cluster_queue,
    "Cohort": _cohort,
    "LocalQueue": _local_queue,
    "Namespace": _namespace,
    "WorkloadPriorityClass": _priority_class,
    "AdmissionCheck": _admission_check,
    "Topology": _topology,
    "Node": _node,
    "Workload": read_workload,
}

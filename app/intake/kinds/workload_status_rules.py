"""What must hold for the status of a Workload together with its spec: controllers of others write it too.

Reserved quota needs an admission with one assignment for each pod set; what a pod set uses divides evenly among its
pods; nobody gives back more pods than there are. What was before is compared in `workload_transitions`.
"""

from collections.abc import Iterator
from typing import Any

from app.core.resources import CPU
from app.errors import FieldError
from app.intake.kinds.metadata import annotation_rules, label_rules
from app.intake.kinds.place import Place
from app.intake.kinds.taints import toleration_rules
from app.intake.kinds.topology_assignment import topology_assignment_rules


def holds(manifest: Place, condition: str) -> bool:
    """Is that condition of the workload true?"""
    return any(
        found.text("type") == condition and found.text("status") == "True"
        for found in manifest.items("status", "conditions")
    )


def status_rules(manifest: Place) -> Iterator[FieldError]:
    status = manifest.at("status")
    if status.absent:
        return
    counts: dict[str, Any] = {
        pod_set.text("name"): pod_set.number("count")
        for pod_set in manifest.items("spec", "podSets")
    }
    if holds(manifest, "QuotaReserved"):
        yield from _reservation_rules(status, counts)
    for assignment in status.items("admission", "podSetAssignments"):
        yield from topology_assignment_rules(assignment.at("topologyAssignment"))
    yield from _reclaimable_rules(status, counts)
    for check in status.items("admissionChecks"):
        for update in check.items("podSetUpdates"):
            yield from _update_rules(update, counts)
    if status.text("clusterName") and status.at("nominatedClusterNames").value:
        yield status.at("nominatedClusterNames").forbidden("must be empty once clusterName is set")


def _reservation_rules(status: Place, counts: dict[str, Any]) -> Iterator[FieldError]:
    admission = status.at("admission")
    if admission.absent:
        yield admission.required("must be set while the condition QuotaReserved is True")
        return
    assignments = list(admission.items("podSetAssignments"))
    if len(assignments) != len(counts):
        yield admission.at("podSetAssignments").invalid(
            f"must have one entry for each of the {len(counts)} pod sets"
        )
    for assignment in assignments:
        if assignment.text("name") not in counts:
            yield assignment.at("name").not_found("the workload has no such pod set")
        yield from _usage_rules(assignment)


def _usage_rules(assignment: Place) -> Iterator[FieldError]:
    count = assignment.number("count")
    if not count:
        return
    for resource, usage in assignment.entries("resourceUsage"):
        amount = usage.amount
        if amount is None:
            continue
        units = amount.milli if resource == CPU else amount.whole
        if units % count:
            yield usage.invalid(f"must be a multiple of count, which is {count}")


def _reclaimable_rules(status: Place, counts: dict[str, Any]) -> Iterator[FieldError]:
    for pods in status.items("reclaimablePods"):
        name, done = pods.text("name"), pods.number("count")
        if name not in counts:
            yield pods.at("name").unsupported(counts)
        elif done is not None and counts[name] is not None and done > counts[name]:
            yield pods.at("count").invalid(
                f"must be less than or equal to the pod set's count, which is {counts[name]}"
            )


def _update_rules(update: Place, counts: dict[str, Any]) -> Iterator[FieldError]:
    if update.text("name") not in counts:
        yield update.at("name").unsupported(counts)
    yield from toleration_rules(update.items("tolerations"))
    yield from annotation_rules(update.at("annotations"))
    yield from label_rules(update.at("nodeSelector"))
    yield from label_rules(update.at("labels"))

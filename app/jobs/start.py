"""What must be put into a job's pods for the admission that its Workload carries?

Per pod set: the admitted count, the node labels and tolerations of its flavors, the labels and annotation by which
pods are found again, and what admission checks ask for. This is Kueue's podset.FromAssignment followed by its merge
of check updates: flavors of one pod set that disagree about a node label keep the first, in the order of resource
names; a check that contradicts anything is a permanent error.
"""

from collections.abc import Iterable, Mapping

from app.core.manifests import Manifest
from app.errors import Conflict
from app.jobs import labels
from app.jobs.adapter import StartInfo
from app.jobs.podsets import CannotStart, PodSetStart

_LABEL_VALUE_LENGTH = 63


def start_info(
    workload: Manifest, flavors: Mapping[str, Manifest], *, attempt: int, epoch: int
) -> StartInfo:
    """`flavors` holds every ResourceFlavor by name; one that is missing means the admission must be decided again."""
    admission: Manifest = workload["status"]["admission"]
    counts = {entry["name"]: entry.get("count", 1) for entry in workload["spec"]["podSets"]}
    pod_sets = tuple(
        _pod_set_start(workload, assignment, counts[assignment["name"]], flavors)
        for assignment in admission["podSetAssignments"]
    )
    return StartInfo(attempt=attempt, epoch=epoch, pod_sets=pod_sets)


def _pod_set_start(
    workload: Manifest, assignment: Manifest, asked: int, flavors: Mapping[str, Manifest]
) -> PodSetStart:
    name: str = assignment["name"]
    specs = _flavor_specs(assignment, flavors)
    updates = _check_updates(workload, name)
    return PodSetStart(
        name=name,
        count=assignment.get("count", asked),
        node_selector=_merged("nodeSelector", _first_wins(specs), updates),
        tolerations=tuple(
            toleration
            for source in (*specs, *updates)
            for toleration in source.get("tolerations") or ()
        ),
        labels=_merged("labels", _identifying_labels(workload, name), updates),
        annotations=_merged(
            "annotations", {labels.WORKLOAD: workload["metadata"]["name"]}, updates
        ),
    )


def _flavor_specs(assignment: Manifest, flavors: Mapping[str, Manifest]) -> list[Manifest]:
    assigned: Mapping[str, str] = assignment.get("flavors") or {}
    names = dict.fromkeys(assigned[resource] for resource in sorted(assigned))
    missing = [name for name in names if name not in flavors]
    if missing:
        raise Conflict(f"The admission uses a ResourceFlavor that is gone: {', '.join(missing)}.")
    return [flavors[name].get("spec") or {} for name in names]


def _first_wins(specs: Iterable[Manifest]) -> dict[str, str]:
    selector: dict[str, str] = {}
    for spec in specs:
        selector = {**(spec.get("nodeLabels") or {}), **selector}
    return selector


def _identifying_labels(workload: Manifest, pod_set: str) -> dict[str, str]:
    found = {
        labels.PODSET: pod_set,
        labels.CLUSTER_QUEUE_NAME: workload["status"]["admission"]["clusterQueue"],
        labels.LOCAL_QUEUE_NAME: workload["spec"].get("queueName") or "",
    }
    return {key: value for key, value in found.items() if 0 < len(value) <= _LABEL_VALUE_LENGTH}


def _check_updates(workload: Manifest, pod_set: str) -> list[Manifest]:
    return [
        update
        for check in workload["status"].get("admissionChecks") or ()
        for update in check.get("podSetUpdates") or ()
        if update["name"] == pod_set
    ]


def _merged(field: str, start: Mapping[str, str], updates: Iterable[Manifest]) -> dict[str, str]:
    result = dict(start)
    for update in updates:
        for key, value in (update.get(field) or {}).items():
            if result.setdefault(key, value) != value:
                raise CannotStart(
                    f"an admission check sets {field}[{key}] to {value!r}, which already is {result[key]!r}"
                )
    return result

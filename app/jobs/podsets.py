"""What does a pod template look like inside a Workload, and with an admission's placement put into it?

Going into a Workload, a template loses the labels the apiserver adds for the job controller (they name one Job).
Coming out, node selectors, tolerations, labels, annotations and gates of the admission are added. A key that the
template already holds with another value is a permanent error, as in Kueue's podset package: the user's word and the
admission's contradict each other and no retry will change that. Tolerations and gates are sets: added once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.manifests import Manifest
from app.errors import FieldError, Invalid
from app.jobs import labels


class CannotStart(Invalid):
    """The admission contradicts the job's own template: permanent until one of the two is edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetStart:
    """What an admission decided for one pod set."""

    name: str
    count: int
    node_selector: Mapping[str, str]
    tolerations: tuple[Manifest, ...] = ()
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    scheduling_gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetShape:
    """How many pods a job asks for under one name. `index_label` is the pod label that carries a pod's rank."""

    name: str
    count: int
    min_count: int | None = None
    index_label: str | None = None


def pod_set(shape: PodSetShape, template: Manifest) -> Manifest:
    """One entry of ``Workload.spec.podSets``."""
    entry: Manifest = {
        "name": shape.name,
        "count": shape.count,
        "template": without_labels(template, labels.JOB_CONTROLLER_LABELS),
    }
    if shape.min_count is not None:
        entry["minCount"] = shape.min_count
    request = _topology_request(template, shape.index_label)
    if request:
        entry["topologyRequest"] = request
    return entry


def without_labels(template: Manifest, names: Iterable[str]) -> Manifest:
    metadata = template.get("metadata") or {}
    present = metadata.get("labels") or {}
    dropped = frozenset(names)
    if dropped.isdisjoint(present):
        return template
    kept = {name: value for name, value in present.items() if name not in dropped}
    stripped = {key: value for key, value in metadata.items() if key != "labels"}
    if kept:
        stripped["labels"] = kept
    return {**template, "metadata": stripped}


_TOPOLOGY_FIELDS = (
    (labels.REQUIRED_TOPOLOGY, "required"),
    (labels.PREFERRED_TOPOLOGY, "preferred"),
    (labels.PODSET_GROUP, "podSetGroupName"),
    (labels.SLICE_TOPOLOGY, "podSetSliceRequiredTopology"),
)


def _topology_request(template: Manifest, index_label: str | None) -> Manifest:
    annotations: Mapping[str, str] = (template.get("metadata") or {}).get("annotations") or {}
    request: Manifest = {
        field: annotations[name] for name, field in _TOPOLOGY_FIELDS if name in annotations
    }
    if annotations.get(labels.UNCONSTRAINED_TOPOLOGY) == "true":
        request["unconstrained"] = True
    size = annotations.get(labels.SLICE_SIZE, "")
    if size.isascii() and size.isdigit():
        request["podSetSliceSize"] = int(size)
    if request and index_label:
        request["podIndexLabel"] = index_label
    return request


def injection(template: Manifest, start: PodSetStart, path: str) -> Manifest:
    """The merge patch that puts `start` into `template`; `path` names the template in an error."""
    metadata: Manifest = template.get("metadata") or {}
    spec: Manifest = template.get("spec") or {}
    changed = {
        "metadata": {
            "labels": _added(metadata, "labels", start.labels, f"{path}.metadata"),
            "annotations": _added(metadata, "annotations", start.annotations, f"{path}.metadata"),
        },
        "spec": {
            "nodeSelector": _added(spec, "nodeSelector", start.node_selector, f"{path}.spec"),
            "tolerations": _union(spec.get("tolerations"), start.tolerations),
            "schedulingGates": _union(
                spec.get("schedulingGates"), [{"name": gate} for gate in start.scheduling_gates]
            ),
        },
    }
    return _without_empty(changed)


def _added(
    holder: Mapping[str, Any], field: str, wanted: Mapping[str, str], path: str
) -> Mapping[str, str]:
    present: Mapping[str, str] = holder.get(field) or {}
    causes = [
        FieldError(
            f"{path}.{field}[{key}]",
            f"the job says {present[key]!r}, the admission {value!r}",
            "FieldValueForbidden",
        )
        for key, value in sorted(wanted.items())
        if present.get(key, value) != value
    ]
    if causes:
        listed = "; ".join(f"{cause.path}: {cause.message}" for cause in causes)
        raise CannotStart(f"the job's pod template contradicts its admission: {listed}", causes)
    return {key: value for key, value in wanted.items() if key not in present}


def _union(present: list[Manifest] | None, added: Iterable[Manifest]) -> list[Manifest]:
    """The whole new list, because merge patches replace lists; empty when nothing is added."""
    result = list(present or ())
    for item in added:
        if item not in result:
            result.append(item)
    return result if len(result) > len(present or ()) else []


def _without_empty(patch: Manifest) -> Manifest:
    kept: Manifest = {}
    for key, value in patch.items():
        pruned = _without_empty(value) if key in ("metadata", "spec") else value
        if pruned:
            kept[key] = pruned
    return kept

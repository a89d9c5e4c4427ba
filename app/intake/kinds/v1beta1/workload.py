"""Workload in v1beta1: priority class in two fields, topology assignments as a plain list, one field misspelt.

A `priorityClassName` without a source says nothing in v1beta1 (the number in `priority` counts), and Kueue's conversion
drops it; so does ours.
"""

from collections.abc import Mapping
from typing import Any

from app.core.manifests import Manifest
from app.core.topology import compressed, expanded
from app.intake.kinds.faults import refused
from app.intake.kinds.place import Place
from app.intake.kinds.v1beta1.reshape import (
    as_v1beta1,
    as_v1beta2,
    changed,
    each_changed,
    edited_schema,
    renamed,
    without,
)

_NAMES = {"accumulatedPastExexcutionTimeSeconds": "accumulatedPastExecutionTimeSeconds"}
_BACK = {new: old for old, new in _NAMES.items()}
_SOURCES = {
    "kueue.x-k8s.io/workloadpriorityclass": ("kueue.x-k8s.io", "WorkloadPriorityClass"),
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
}


def to_storage(manifest: Manifest) -> Manifest:
    source = Place(manifest).at("spec", "priorityClassSource")
    if source.value and source.value not in _SOURCES:
        raise refused(manifest, [source.unsupported(_SOURCES)])
    stored = changed(as_v1beta2(manifest), "spec", _spec_to_storage)
    return changed(stored, "status", _status_to_storage)


def _spec_to_storage(spec: dict[str, Any]) -> dict[str, Any]:
    out = without(spec, "priorityClassName", "priorityClassSource")
    name = spec.get("priorityClassName")
    if name and (source := spec.get("priorityClassSource")):
        group, kind = _SOURCES[source]
        out["priorityClassRef"] = {"group": group, "kind": kind, "name": name}
    return out


def _status_to_storage(status: dict[str, Any]) -> dict[str, Any]:
    return _assignments_changed(renamed(status, _NAMES), _compressed)


def from_storage(manifest: Manifest) -> Manifest:
    read = changed(as_v1beta1(manifest), "spec", _spec_from_storage)
    return changed(read, "status", _status_from_storage)


def _spec_from_storage(spec: dict[str, Any]) -> dict[str, Any]:
    reference = spec.get("priorityClassRef")
    if not reference:
        return spec
    kind = (reference["group"], reference["kind"])
    source = next(source for source, of in _SOURCES.items() if of == kind)
    out = without(spec, "priorityClassRef")
    return {**out, "priorityClassName": reference["name"], "priorityClassSource": source}


def _status_from_storage(status: dict[str, Any]) -> dict[str, Any]:
    return _assignments_changed(renamed(status, _BACK), _expanded)


def _assignments_changed(status: dict[str, Any], change: Any) -> dict[str, Any]:
    def assignment_changed(assignment: dict[str, Any]) -> dict[str, Any]:
        return changed(assignment, "topologyAssignment", change)

    return changed(
        status,
        "admission",
        lambda admission: each_changed(admission, "podSetAssignments", assignment_changed),
    )


def _compressed(assignment: dict[str, Any]) -> dict[str, Any]:
    """What does not look like a plain list is left alone, for the validation to speak about."""
    levels, domains = assignment.get("levels"), assignment.get("domains")
    if not isinstance(levels, list) or not isinstance(domains, list):
        return assignment
    if not all(_is_domain(domain, len(levels)) for domain in domains):
        return assignment
    return compressed(levels, [(domain["values"], domain["count"]) for domain in domains])


def _is_domain(domain: Any, levels: int) -> bool:
    values = domain.get("values") if isinstance(domain, dict) else None
    if not isinstance(values, list) or len(values) != levels:
        return False
    return all(isinstance(value, str) for value in values) and type(domain.get("count")) is int


def _expanded(assignment: dict[str, Any]) -> dict[str, Any]:
    domains = [{"values": list(values), "count": count} for values, count in expanded(assignment)]
    return {"levels": assignment.get("levels", []), "domains": domains}


def schema(current: Mapping[str, Any]) -> dict[str, Any]:
    return edited_schema(current, spec=_spec_schema, status=_status_schema)


def _spec_schema(properties: dict[str, Any]) -> dict[str, Any]:
    out = without(properties, "priorityClassRef")
    out["priorityClassName"] = {
        "type": "string",
        "maxLength": 253,
        "description": "The class that the priority was taken from.",
    }
    out["priorityClassSource"] = {
        "type": "string",
        "enum": [*_SOURCES, ""],
        "description": "Which kind of class that is.",
    }
    return out


def _status_schema(properties: dict[str, Any]) -> dict[str, Any]:
    out = renamed(properties, _BACK)
    assignment = out["admission"]["properties"]["podSetAssignments"]["items"]["properties"]
    topology = assignment["topologyAssignment"]["properties"]
    topology["domains"] = {
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "description": "The domains and their pods, in order.",
        "items": {
            "type": "object",
            "required": ["values", "count"],
            "properties": {
                "values": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 63},
                    "x-kubernetes-list-type": "atomic",
                    "description": "One value for each level.",
                },
                "count": {"type": "integer", "format": "int32", "description": "How many pods."},
            },
        },
    }
    del topology["slices"]
    assignment["topologyAssignment"]["required"] = ["levels", "domains"]
    return out

"""Two toy kinds that use everything a kind can: Workshop (namespaced, status, list maps and sets, two versions) and
Tool (cluster-scoped, columns, no status)."""

from typing import Any

from app.apiserver.kinds import AGE, Column, Conversion, Kind
from app.core.manifests import Manifest
from app.errors import FieldError, Invalid

GROUP = "toys.sluice.dev"

STRING = {"type": "string"}
CONDITIONS = {
    "type": "array",
    "description": "What is known about the workshop.",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "properties": dict.fromkeys(
            ("type", "status", "reason", "message", "lastTransitionTime"), STRING
        ),
    },
}


def workshop_schema(size: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Workshop is a place where people work.",
        "$defs": {
            "Bench": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "Name of the bench."},
                    "seats": {"type": "integer", "description": "How many can sit there."},
                    "vice": {"type": "boolean"},
                },
            }
        },
        "properties": {
            "spec": {
                "type": "object",
                "description": "What the workshop should be like.",
                "properties": {
                    size: {"type": "integer", "description": "How many people fit in."},
                    "owner": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "benches": {
                        "type": "array",
                        "description": "The benches, by name.",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {"$ref": "#/$defs/Bench"},
                    },
                    "crafts": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                    "hours": {"type": "array", "items": {"type": "integer"}},
                    "selector": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "additionalProperties": STRING,
                    },
                    "limits": {
                        "type": "object",
                        "additionalProperties": {"x-kubernetes-int-or-string": True},
                    },
                },
            },
            "status": {
                "type": "object",
                "properties": {"conditions": CONDITIONS, "visitors": {"type": "integer"}},
            },
        },
    }


def prepare_workshop(new: Manifest, old: Manifest | None) -> Manifest:
    spec = new.setdefault("spec", {})
    spec.setdefault("size", 1)
    faults = []
    if not isinstance(spec["size"], int) or spec["size"] < 0:
        faults.append(
            FieldError("spec.size", f"Invalid value: {spec['size']}: must not be negative")
        )
    if old is not None and old["spec"].get("owner") and spec.get("owner") != old["spec"]["owner"]:
        faults.append(
            FieldError("spec.owner", "Forbidden: field is immutable", "FieldValueForbidden")
        )
    if faults:
        raise Invalid("the workshop is wrong", faults)
    return new


def _to_storage(manifest: Manifest) -> Manifest:
    return _rename(manifest, "places", "size")


def _from_storage(manifest: Manifest) -> Manifest:
    return _rename(manifest, "size", "places")


def _rename(manifest: Manifest, before: str, after: str) -> Manifest:
    spec = {
        after if key == before else key: value for key, value in manifest.get("spec", {}).items()
    }
    return {**manifest, "spec": spec}


def ready(manifest: Manifest) -> str:
    for condition in manifest.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready":
            return str(condition.get("status", ""))
    return ""


WORKSHOP = Kind(
    group=GROUP,
    version="v1",
    kind="Workshop",
    plural="workshops",
    singular="workshop",
    namespaced=True,
    short_names=("ws",),
    categories=("toys",),
    schema=workshop_schema("size"),
    prepare=prepare_workshop,
    columns=(
        Column(name="Size", type="integer", cell=lambda manifest: manifest["spec"].get("size")),
        Column(name="Ready", cell=ready),
        Column(name="Owner", priority=1, cell=lambda manifest: manifest["spec"].get("owner", "")),
        AGE,
    ),
    served={
        "v1alpha1": Conversion(
            to_storage=_to_storage,
            from_storage=_from_storage,
            schema=workshop_schema("places"),
            deprecated="toys.sluice.dev/v1alpha1 Workshop is deprecated; use v1",
        )
    },
    selectable=("spec.owner",),
)

TOOL = Kind(
    group=GROUP,
    version="v1",
    kind="Tool",
    plural="tools",
    singular="tool",
    namespaced=False,
    categories=("toys",),
    status=False,
    unconditional_update=True,
    schema={
        "type": "object",
        "description": "Tool is something to work with.",
        "properties": {"spec": {"type": "object", "properties": {"weight": {"type": "integer"}}}},
    },
    columns=(
        Column(
            name="Weight",
            type="integer",
            cell=lambda manifest: manifest.get("spec", {}).get("weight"),
        ),
    ),
)


def workshop(name: str, *, namespace: str = "default", **spec: Any) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Workshop",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def tool(name: str, weight: int = 1) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Tool",
        "metadata": {"name": name},
        "spec": {"weight": weight},
    }

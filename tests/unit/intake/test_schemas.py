"""The schemas are structural, say how lists merge, and describe every field in words."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from app.intake.kinds import DEFINITIONS
from app.intake.kinds.v1beta1 import old_version

ALL = [
    pytest.param(schema, id=f"{kind}-{version}")
    for kind, definition in DEFINITIONS.items()
    for version, schema in (
        ("v1beta2", definition.schema),
        ("v1beta1", old_version(kind).schema),
    )
]


def nodes(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, prop in schema.get("properties", {}).items():
        yield from nodes(prop, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from nodes(schema["additionalProperties"], f"{path}[*]")


@pytest.mark.parametrize("schema", ALL)
def test_every_node_is_structural(schema: Mapping[str, Any]) -> None:
    for path, node in nodes(schema):
        assert node.keys() & {"$ref", "$defs", "title", "allOf", "oneOf", "const"} == set(), path
        assert node.get("additionalProperties") not in (True, False), path
        assert "default" not in node or node["default"] is not None, path
        if "anyOf" in node:
            assert node.get("x-kubernetes-int-or-string") is True, path
        else:
            assert node["type"] in ("object", "array", "string", "integer", "boolean"), path


@pytest.mark.parametrize("schema", ALL)
def test_list_keys_are_fields_that_each_element_has(schema: Mapping[str, Any]) -> None:
    for path, node in nodes(schema):
        if node.get("x-kubernetes-list-type") != "map":
            continue
        element = node["items"]
        if not element.get("x-kubernetes-preserve-unknown-fields"):
            for key in node["x-kubernetes-list-map-keys"]:
                has = key in element.get("required", ()) or "default" in element["properties"][key]
                assert has, f"{path}: {key}"


@pytest.mark.parametrize("schema", ALL)
def test_every_field_is_described(schema: Mapping[str, Any]) -> None:
    for path, node in nodes(schema):
        if not path.endswith(("[]", "[*]")):
            assert len(node.get("description", "")) > 5, path


def at(kind: str, *path: str) -> Mapping[str, Any]:
    node: Any = DEFINITIONS[kind].schema
    for name in path:
        node = node["items"] if name == "[]" else node["properties"][name]
    found: Mapping[str, Any] = node
    return found


@pytest.mark.parametrize(
    ("kind", "path", "keys"),
    [
        ("ClusterQueue", ("status", "conditions"), ["type"]),
        ("ClusterQueue", ("spec", "resourceGroups", "[]", "flavors"), ["name"]),
        ("ClusterQueue", ("spec", "resourceGroups", "[]", "flavors", "[]", "resources"), ["name"]),
        ("ClusterQueue", ("spec", "admissionChecksStrategy", "admissionChecks"), ["name"]),
        ("Workload", ("spec", "podSets"), ["name"]),
        ("Workload", ("status", "admission", "podSetAssignments"), ["name"]),
        ("Workload", ("status", "admissionChecks"), ["name"]),
        ("Workload", ("status", "conditions"), ["type"]),
        ("Workload", ("status", "reclaimablePods"), ["name"]),
    ],
)
def test_lists_that_merge_by_key(kind: str, path: tuple[str, ...], keys: list[str]) -> None:
    node = at(kind, *path)
    assert node["x-kubernetes-list-type"] == "map"
    assert node["x-kubernetes-list-map-keys"] == keys


def test_a_few_fields_in_full() -> None:
    quota = at("ClusterQueue", "spec", "resourceGroups", "[]", "flavors", "[]", "resources", "[]")
    assert quota["required"] == ["name", "nominalQuota"]
    assert quota["properties"]["nominalQuota"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert at("ClusterQueue", "spec", "stopPolicy")["enum"] == ["None", "Hold", "HoldAndDrain"]
    assert at("ClusterQueue", "spec", "preemption")["default"] == {}
    assert at("Workload", "spec", "priority")["format"] == "int32"
    assert at("Workload", "spec", "podSets")["maxItems"] == 18
    template = at("Workload", "spec", "podSets", "[]", "template", "spec")
    assert template["x-kubernetes-preserve-unknown-fields"] is True
    assert "x-kubernetes-preserve-unknown-fields" not in at("Workload", "spec")

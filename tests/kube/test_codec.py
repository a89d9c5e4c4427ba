"""What remains of an object after decoding?"""

import json
from typing import Any

import msgspec
import pytest

from app.kube.codec import ManifestCodec, ObjectRef, SlimObject, StructCodec


class NodeSpec(msgspec.Struct, rename="camel"):
    unschedulable: bool = False


class Node(SlimObject):
    spec: NodeSpec


OBJECT: dict[str, Any] = {
    "metadata": {
        "name": "n",
        "uid": "u",
        "resourceVersion": "5",
        "labels": {"a": "b"},
        "annotations": {"x": "y"},
        "managedFields": [{}],
    },
    "spec": {"unschedulable": True, "podCIDR": "10.0.0.0/24"},
}
RAW = msgspec.Raw(json.dumps(OBJECT).encode())


def test_a_manifest_is_whole_but_for_managed_fields() -> None:
    codec = ManifestCodec()
    manifest = codec.decode(RAW, "v1", "Node")
    expected = {**OBJECT, "apiVersion": "v1", "kind": "Node"}
    expected["metadata"] = {k: v for k, v in OBJECT["metadata"].items() if k != "managedFields"}
    assert manifest == expected
    assert codec.ref(manifest) == ObjectRef("", "n", "u", "5")
    assert "kind" not in codec.decode(RAW, "", "")


def test_a_struct_holds_only_its_fields() -> None:
    codec = StructCodec(Node)
    node = codec.decode(RAW, "v1", "Node")
    assert node.spec == NodeSpec(unschedulable=True)
    assert node.metadata.labels == {"a": "b"}
    assert codec.ref(node) == ObjectRef("", "n", "u", "5")


def test_an_object_that_lacks_what_is_needed_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        StructCodec(Node).decode(msgspec.Raw(b'{"metadata":{"name":"n"}}'), "", "")

"""A kind's schema in the one form that the rest of this package walks.

Local references are put in place, ``anyOf [X, null]`` becomes X, ``apiVersion``, ``kind`` and ``metadata`` are
described for every kind, and structured items of a map or list are asked for with `child` and `item`. Recursive
references end as "any value". Whether a value obeys the schema is not decided here: that is `Kind.prepare`.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

ANY: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_TIME: Schema = {"type": "string", "format": "date-time"}


def _told(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


METADATA: Schema = {
    "type": "object",
    "description": "Standard object metadata.",
    "properties": {
        "name": _told({"type": "string"}, "Unique within its namespace; cannot be changed."),
        "generateName": _told(
            {"type": "string"}, "Prefix from which the server makes a unique name at creation."
        ),
        "namespace": _told({"type": "string"}, "The space within which the name is unique."),
        "selfLink": _told({"type": "string"}, "No longer filled in."),
        "uid": _told({"type": "string"}, "Unique in time and space; set by the server."),
        "resourceVersion": _told(
            {"type": "string"}, "Opaque version of the object, for concurrency control and watches."
        ),
        "generation": _told(
            {"type": "integer", "format": "int64"}, "Counts changes of the desired state."
        ),
        "creationTimestamp": _told(_TIME, "When the object was created; set by the server."),
        "deletionTimestamp": _told(_TIME, "When deletion was asked for; set by the server."),
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "labels": _told(_STRINGS, "Keys and values by which objects are organised and selected."),
        "annotations": _told(_STRINGS, "Keys and values kept for tools; not for selecting."),
        "finalizers": {
            "type": "array",
            "description": "Must be empty before the object is removed.",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
        "ownerReferences": {
            "type": "array",
            "description": "Objects that this object depends on.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "name": {"type": "string"},
                    "uid": {"type": "string"},
                    "controller": {"type": "boolean"},
                    "blockOwnerDeletion": {"type": "boolean"},
                },
            },
        },
        "managedFields": {
            "type": "array",
            "description": "Which manager set which fields; kept by the server.",
            "x-kubernetes-list-type": "atomic",
            "items": {
                "type": "object",
                "properties": {
                    "manager": {"type": "string"},
                    "operation": {"type": "string"},
                    "apiVersion": {"type": "string"},
                    "time": _TIME,
                    "fieldsType": {"type": "string"},
                    "fieldsV1": {"type": "object", **ANY},
                    "subresource": {"type": "string"},
                },
            },
        },
    },
}


def settle(schema: Schema) -> Schema:
    """The whole object's schema, self-contained."""
    body = _inline(schema, schema.get("$defs", {}), ())
    body.pop("$defs", None)
    body.pop("title", None)
    body["type"] = "object"
    body["properties"] = {
        "apiVersion": _told({"type": "string"}, "The group and version of this object's schema."),
        "kind": _told({"type": "string"}, "The kind of this object."),
        **body.get("properties", {}),
        "metadata": METADATA,
    }
    return body


def _inline(node: Any, defs: Mapping[str, Any], open_refs: tuple[str, ...]) -> dict[str, Any]:
    """`node` without references; `open_refs` are those being put in place, to notice recursion."""
    if not isinstance(node, Mapping):  # ``true``: anything goes
        return dict(ANY)
    ref = node.get("$ref") or _only_ref(node)
    if isinstance(ref, str):
        name = ref.rsplit("/", 1)[-1]
        if name in open_refs or name not in defs:
            return dict(ANY)
        own = {key: value for key, value in node.items() if key not in ("$ref", "allOf", "anyOf")}
        return {**_inline(defs[name], defs, (*open_refs, name)), **own}
    node = _without_null(node)
    if "$ref" in node:
        return _inline(node, defs, open_refs)
    return _descend(node, defs, open_refs)


def _only_ref(node: Mapping[str, Any]) -> Any:
    wrapped = node.get("allOf", ())
    return wrapped[0].get("$ref") if len(wrapped) == 1 else None


def _without_null(node: Mapping[str, Any]) -> Mapping[str, Any]:
    options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) != 1:
        return node
    return {**options[0], **{key: value for key, value in node.items() if key != "anyOf"}}


def _descend(
    node: Mapping[str, Any], defs: Mapping[str, Any], open_refs: tuple[str, ...]
) -> dict[str, Any]:
    out = dict(node)
    if "properties" in node:
        out["properties"] = {
            name: _inline(child, defs, open_refs) for name, child in node["properties"].items()
        }
    if "items" in node:
        out["items"] = _inline(node["items"], defs, open_refs)
    extra = node.get("additionalProperties")
    if isinstance(extra, Mapping):
        out["additionalProperties"] = _inline(extra, defs, open_refs)
    return out


def child(schema: Schema, name: str) -> Schema | None:
    """The schema of a field or map entry; None when the schema knows no such field."""
    known: Schema | None = schema.get("properties", {}).get(name)
    if known is not None:
        return known
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        return extra
    if extra is True or is_open(schema):
        return ANY
    return None


def item(schema: Schema) -> Schema:
    found: Schema = schema.get("items", ANY)
    return found


def is_open(schema: Schema) -> bool:
    """Any fields may be here: asked for, or nothing is said about fields at all."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    return "properties" not in schema and "additionalProperties" not in schema


def is_field(schema: Schema, name: str) -> bool:
    """A declared field, as opposed to an entry of a map."""
    return name in schema.get("properties", {})

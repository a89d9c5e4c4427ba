"""The structural OpenAPI v3 schema of a model: what discovery, `kubectl explain` and server-side apply read.

Pydantic's JSON schema is close but not structural: references are put in place, optional fields lose their null
alternative, closed records lose ``additionalProperties: false`` (the API server's own check covers it), open ones are
marked ``x-kubernetes-preserve-unknown-fields``, and bounds that only repeat an integer format are dropped.
"""

from typing import Any

from pydantic import BaseModel

from app.intake.kinds.fields import INT32_MAX, INT32_MIN, INT64_MAX

_IMPLIED = {"minimum": (INT32_MIN, -INT64_MAX - 1), "maximum": (INT32_MAX, INT64_MAX)}


def structural(model: type[BaseModel]) -> dict[str, Any]:
    raw = model.model_json_schema(by_alias=True)
    return _node(raw, raw.get("$defs", {}))


def _node(raw: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    merged = _resolved(raw, defs)
    out = {key: value for key, value in merged.items() if key not in _DROPPED}
    if out.get("default", ...) is None:
        del out["default"]
    if out.get("format") == "date-time":
        out.pop("pattern", None)
    for bound, implied in _IMPLIED.items():
        if out.get(bound) in implied:
            del out[bound]
    if "properties" in merged:
        out["properties"] = {name: _node(prop, defs) for name, prop in merged["properties"].items()}
    if "items" in merged:
        out["items"] = _node(merged["items"], defs)
    _additional(merged.get("additionalProperties"), out, defs)
    return out


_DROPPED = frozenset({"$defs", "title", "properties", "items", "additionalProperties"})


def _resolved(raw: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """The node itself, with references and null alternatives replaced by what they stand for."""
    node = dict(raw)
    if "x-kubernetes-int-or-string" not in node and "anyOf" in node:
        (only,) = [choice for choice in node.pop("anyOf") if choice.get("type") != "null"]
        node = {**only, **node}
    while "$ref" in node:
        target = defs[node.pop("$ref").rpartition("/")[2]]
        node = {**_resolved(target, defs), **node}
    if "const" in node:
        node["enum"] = [node.pop("const")]
    return node


def _additional(additional: Any, out: dict[str, Any], defs: dict[str, Any]) -> None:
    if additional is True:
        out["x-kubernetes-preserve-unknown-fields"] = True
    elif isinstance(additional, dict):
        out["additionalProperties"] = _node(additional, defs)

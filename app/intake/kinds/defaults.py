"""Defaults as a CRD's schema gives them, and no others.

A field that the schema knows and that is null counts as absent; an absent field with a default gets it; the defaulted
value is defaulted in turn. An absent parent stays absent unless it has a default of its own. What the user wrote is
never touched: the result shares every part that did not change with the manifest given, which itself stays as it was.

The schema is compiled once into closures, because each Workload passes here several times in its life.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

Fill = Callable[[Any], Any]


def compiled(schema: Mapping[str, Any]) -> Fill:
    """A function from a value to the value with its defaults."""
    return _fill(schema) or _same


def _same(value: Any) -> Any:
    return value


def _fill(schema: Mapping[str, Any]) -> Fill | None:
    if "properties" in schema:
        return _record(schema["properties"])
    if "items" in schema:
        element = _fill(schema["items"])
        return _each(element) if element else None
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        entry = _fill(additional)
        return _every(entry) if entry else None
    return None


def _record(properties: Mapping[str, Any]) -> Fill:
    absent = {name: prop["default"] for name, prop in properties.items() if "default" in prop}
    nested = {name: child for name, prop in properties.items() if (child := _fill(prop))}

    def fill(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        out = value
        if None in value.values():
            out = {k: v for k, v in value.items() if v is not None or k not in properties}
        missing = {name: deepcopy(given) for name, given in absent.items() if name not in out}
        if missing:
            out = {**out, **missing}
        for name, child in nested.items():
            if name in out and (filled := child(out[name])) is not out[name]:
                out = {**out, name: filled}
        return out

    return fill


def _each(element: Fill) -> Fill:
    def fill(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        filled = [element(item) for item in value]
        changed = any(new is not old for new, old in zip(filled, value, strict=True))
        return filled if changed else value

    return fill


def _every(entry: Fill) -> Fill:
    def fill(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        filled = {key: entry(item) for key, item in value.items()}
        changed = any(filled[key] is not item for key, item in value.items())
        return filled if changed else value

    return fill

"""Values where the schema wants a value of another shape: an object, a list, or something plain; and nulls.

A field that is null is a field that is not there, so that no kind has to tell the two apart. The check of shapes is the
part of validation that every kind needs before its own rules can look at an object at all, so it is done here once.
What a plain value may be (a string, a quantity, a number) is left to the kind.
"""

from typing import Any

from app.apiserver.schemas import Schema, child, item
from app.errors import FieldError

_PLAIN = frozenset({"string", "integer", "number", "boolean"})
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}


def drop_nulls(value: Any) -> None:
    """Remove every field that is null, in place. Items of lists stay, since their place counts."""
    if isinstance(value, list):
        entries = value
    else:
        for name in [name for name, entry in value.items() if entry is None]:
            del value[name]
        entries = value.values()
    for entry in entries:
        if isinstance(entry, dict | list):
            drop_nulls(entry)


def misshapen(value: Any, schema: Schema, path: str = "") -> list[FieldError]:
    """One fault for each value of the wrong shape, in the order of the manifest. Null is never wrong here."""
    wanted = schema.get("type")
    if isinstance(value, dict):
        if wanted == "array" or wanted in _PLAIN:
            return [_fault(path, value, wanted)]
        return _in_map(value, schema, path)
    if isinstance(value, list):
        if wanted == "object" or wanted in _PLAIN:
            return [_fault(path, value, wanted)]
        return _in_list(value, item(schema), path)
    if value is not None and wanted in ("object", "array"):
        return [_fault(path, value, wanted)]
    return []


def _in_map(value: dict[str, Any], schema: Schema, path: str) -> list[FieldError]:
    known = schema.get("properties") or {}
    found: list[FieldError] = []
    for name, entry in value.items():
        below = known.get(name) or child(schema, name)
        if below and "type" in below:
            found += misshapen(entry, below, f"{path}.{name}" if path else name)
    return found


def _in_list(value: list[Any], schema: Schema, path: str) -> list[FieldError]:
    if "type" not in schema:
        return []
    return [
        fault
        for index, entry in enumerate(value)
        for fault in misshapen(entry, schema, f"{path}[{index}]")
    ]


def _fault(path: str, value: Any, wanted: str | None) -> FieldError:
    given = _NAMES.get(type(value), "number")
    return FieldError(
        path,
        f'Invalid value: "{given}": {path} in body must be of type {wanted}: "{given}"',
        "FieldValueTypeInvalid",
    )

"""Fields that the schema does not know: found with their paths and cut out.

The caller decides what finding them means (refuse, warn, ignore); in every case they are not stored. Values of the
wrong type are left to the kind's own validation.
"""

from typing import Any

from app.apiserver.schemas import Schema, child, is_open, item


def prune_unknown(value: Any, schema: Schema, path: str = "") -> list[str]:
    """Remove unknown fields in place and answer their paths, in the order of the manifest."""
    if isinstance(value, dict):
        return _prune_map(value, schema, path)
    if isinstance(value, list):
        return _prune_items(value, item(schema), path)
    return []


def _prune_items(value: list[Any], schema: Schema, path: str) -> list[str]:
    found: list[str] = []
    for index, entry in enumerate(value):
        if isinstance(entry, dict | list):
            found += prune_unknown(entry, schema, f"{path}[{index}]")
    return found


def _prune_map(value: dict[str, Any], schema: Schema, path: str) -> list[str]:
    known = schema.get("properties")
    if known is None:
        if is_open(schema):
            return []
        known = {}
    found: list[str] = []
    for name, entry in list(value.items()):
        below = known.get(name) or child(schema, name)
        if below is None:
            found.append(f"{path}.{name}" if path else name)
            del value[name]
        elif isinstance(entry, dict | list):
            found += prune_unknown(entry, below, f"{path}.{name}" if path else name)
    return found

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
        below = item(schema)
        if is_open(below) and below.get("type") != "array":
            return []
        return [
            found
            for index, entry in enumerate(value)
            for found in prune_unknown(entry, below, f"{path}[{index}]")
        ]
    return []


def _prune_map(value: dict[str, Any], schema: Schema, path: str) -> list[str]:
    if is_open(schema) and "properties" not in schema:
        return []
    found: list[str] = []
    for name in list(value):
        below = child(schema, name)
        where = f"{path}.{name}" if path else name
        if below is None:
            found.append(where)
            del value[name]
        else:
            found += prune_unknown(value[name], below, where)
    return found

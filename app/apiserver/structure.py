"""What the schema says about a value's parts: which maps and lists are one leaf, and how list items are known.

Maps have parts unless they are atomic; lists are one leaf unless the schema names them a set or a map by keys. A list
whose items cannot be told apart by their keys is one leaf too.
"""

from collections.abc import Iterable
from typing import Any

from app.apiserver.fields import map_key, set_key
from app.apiserver.schemas import ANY, Schema, child, item


def below(schema: Schema, name: str) -> Schema:
    return child(schema, name) or ANY


def has_parts(value: Any, schema: Schema) -> bool:
    """A map whose entries are owned and merged one by one."""
    return isinstance(value, dict) and schema.get("x-kubernetes-map-type") != "atomic"


def is_keyed(schema: Schema) -> bool:
    return schema.get("x-kubernetes-list-type") in ("set", "map")


def item_keys(items: list[Any], schema: Schema) -> list[str] | None:
    """One key an item, all different; None when the list is one leaf."""
    match schema.get("x-kubernetes-list-type"):
        case "set":
            keys = [set_key(entry) for entry in items if not isinstance(entry, dict | list)]
        case "map":
            keys = list(_map_keys(items, schema))
        case _:
            return None
    return keys if len(keys) == len(items) == len(set(keys)) else None


def _map_keys(items: list[Any], schema: Schema) -> Iterable[str]:
    names = schema.get("x-kubernetes-list-map-keys", ())
    known = item(schema).get("properties", {})
    for entry in items:
        if not isinstance(entry, dict):
            continue
        found = {name: entry.get(name, known.get(name, {}).get("default")) for name in names}
        found = {name: value for name, value in found.items() if value is not None}
        if found and not any(isinstance(value, dict | list) for value in found.values()):
            yield map_key(found)

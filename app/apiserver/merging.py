"""What server-side apply makes of values: the live one merged with what is applied, less what is no longer applied.

List items that have keys are merged item by item: items that are applied come in the order in which they are applied,
the others stay where they were. Everything else that is applied replaces what was there.
"""

from collections.abc import Iterator
from typing import Any

from app.apiserver.fields import Fields, is_member
from app.apiserver.schemas import Schema, item
from app.apiserver.structure import below, has_parts, is_keyed, item_keys
from app.core.manifests import Manifest
from app.errors import BadRequest


def check_keys(value: Any, schema: Schema, path: str = "") -> None:
    """Refuse what is applied if list items in it cannot be told apart."""
    if has_parts(value, schema):
        for name, entry in value.items():
            check_keys(entry, below(schema, name), f"{path}.{name}")
    elif isinstance(value, list) and is_keyed(schema):
        if item_keys(value, schema) is None:
            raise BadRequest(
                f"failed to create typed patch object: {path}: "
                "items must have their keys, and no two may have the same"
            )
        for index, entry in enumerate(value):
            check_keys(entry, item(schema), f"{path}[{index}]")


def merge(live: Manifest, applied: Manifest, schema: Schema) -> Manifest:
    merged = dict(live)
    for name, value in applied.items():
        if name in live:
            merged[name] = _merge_value(live[name], value, below(schema, name))
        else:
            merged[name] = value
    return merged


def _merge_value(live: Any, applied: Any, schema: Schema) -> Any:
    if has_parts(live, schema) and has_parts(applied, schema):
        return merge(live, applied, schema)
    if isinstance(live, list) and isinstance(applied, list):
        live_keys, applied_keys = item_keys(live, schema), item_keys(applied, schema)
        if live_keys is not None and applied_keys is not None:
            before = dict(zip(live_keys, live, strict=True))
            wanted = dict(zip(applied_keys, applied, strict=True))
            return list(_merge_items(before, wanted, item(schema)))
    return applied


def _merge_items(live: dict[str, Any], applied: dict[str, Any], schema: Schema) -> Iterator[Any]:
    """Each place of a shared item takes the applied items up to and including the next shared one."""
    coming = iter(applied.items())
    for key, value in live.items():
        if key not in applied:
            yield value
            continue
        for wanted_key, wanted in coming:
            shared = wanted_key in live
            yield _merge_value(live[wanted_key], wanted, schema) if shared else wanted
            if shared:
                break
    for _, wanted in coming:
        yield wanted


def prune(value: Manifest, dropped: Fields, owned: Fields, schema: Schema) -> Manifest:
    """Take out what is in `dropped` (applied last time) and in no way in `owned` (by anyone, now)."""
    kept: Manifest = {}
    for name, entry in value.items():
        key = f"f:{name}"
        if key not in dropped:
            kept[name] = entry
            continue
        rest = _prune_value(entry, dropped[key], owned.get(key), below(schema, name))
        if rest is not _GONE:
            kept[name] = rest
    return kept


_GONE = object()


def _prune_value(value: Any, dropped: Fields, owned: Fields | None, schema: Schema) -> Any:
    if owned is None and is_member(dropped):
        return _GONE
    if not dropped:  # a leaf that someone owns
        return value
    rest = _prune_parts(value, dropped, owned or {}, schema)
    emptied = bool(value) and not rest
    return _GONE if emptied and owned is None else rest


def _prune_parts(value: Any, dropped: Fields, owned: Fields, schema: Schema) -> Any:
    if has_parts(value, schema):
        return prune(value, dropped, owned, schema)
    keys = item_keys(value, schema) if isinstance(value, list) else None
    if keys is None:
        return value
    rest = []
    for key, entry in zip(keys, value, strict=True):
        if key in dropped:
            entry = _prune_value(entry, dropped[key], owned.get(key), item(schema))  # noqa: PLW2901
        if entry is not _GONE:
            rest.append(entry)
    return rest

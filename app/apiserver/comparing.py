"""Which fields does a value set, and which fields differ between two values?

The answers are field sets as ``managedFields`` keeps them. A map or list item that appears or goes is a member itself
besides its parts, as structured-merge-diff (KEP-555) counts them; equal parts are skipped without being looked into.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from app.apiserver.fields import Fields, node, union
from app.apiserver.schemas import Schema, is_field, item
from app.apiserver.structure import below, has_parts, is_keyed, item_keys
from app.core.manifests import Manifest

_ABSENT: Final = object()  # no value at all, as opposed to null


def fields_of(value: Manifest, schema: Schema, *, whole: bool = False) -> Fields:
    """All fields that a map sets.

    Entries that the schema does not declare are members themselves; with `whole`, everything that has parts is.
    """
    made: Fields = {}
    for name, entry in value.items():
        if not isinstance(entry, dict | list):
            made[f"f:{name}"] = {}
            continue
        under = below(schema, name)
        found = node(whole or not is_field(schema, name), _parts(entry, under, whole=whole))
        if found is not None:
            made[f"f:{name}"] = found
        elif entry != [] or not is_keyed(under):  # a leaf, or an empty map
            made[f"f:{name}"] = {}
    return made


def _parts(value: Any, schema: Schema, *, whole: bool) -> Fields:
    """What is within a value; nothing within a leaf."""
    if has_parts(value, schema):
        return fields_of(value, schema, whole=whole)
    keys = item_keys(value, schema) if isinstance(value, list) else None
    if keys is None:
        return {}
    below_items = item(schema)
    entries = zip(keys, value, strict=True)
    return {key: node(True, _parts(one, below_items, whole=whole)) or {} for key, one in entries}


@dataclass(slots=True)
class Difference:
    """Three field sets, and whether the value that was compared is itself a member of each."""

    added: Fields = field(default_factory=dict)
    modified: Fields = field(default_factory=dict)
    removed: Fields = field(default_factory=dict)
    is_added: bool = False
    is_modified: bool = False
    is_removed: bool = False

    @property
    def changed(self) -> Fields:
        return union(self.added, self.modified)

    def hang(self, key: str, found: "Difference | None") -> None:
        """Put what was found below `key` into this level."""
        if found is None:
            return
        for mine, theirs, itself in (
            (self.added, found.added, found.is_added),
            (self.modified, found.modified, found.is_modified),
            (self.removed, found.removed, found.is_removed),
        ):
            made = node(itself, theirs)
            if made is not None:
                mine[key] = made


def difference_of(old: Manifest, new: Manifest, schema: Schema) -> Difference:
    """What changed from one map to another."""
    found = Difference()
    for name in {**old, **new}:
        before, after = old.get(name, _ABSENT), new.get(name, _ABSENT)
        found.hang(f"f:{name}", _differ(before, after, below(schema, name)))
    return found


def _differ(old: Any, new: Any, schema: Schema) -> Difference | None:
    if old is new or old == new:
        return None
    if old is _ABSENT:
        return Difference(added=_parts(new, schema, whole=True), is_added=True)
    if new is _ABSENT:
        return Difference(removed=_parts(old, schema, whole=True), is_removed=True)
    return _differ_parts(old, new, schema) or Difference(is_modified=True)


def _differ_parts(old: Any, new: Any, schema: Schema) -> Difference | None:
    """None when the value is one leaf, or empty on both sides."""
    if not old and not new:
        return None
    if has_parts(old, schema) and has_parts(new, schema):
        return difference_of(old, new, schema)
    if isinstance(old, list) and isinstance(new, list):
        return _differ_items(old, new, schema)
    return None


def _differ_items(old: list[Any], new: list[Any], schema: Schema) -> Difference | None:
    old_keys, new_keys = item_keys(old, schema), item_keys(new, schema)
    if old_keys is None or new_keys is None:
        return None
    before = dict(zip(old_keys, old, strict=True))
    after = dict(zip(new_keys, new, strict=True))
    found = Difference()
    for key in {**before, **after}:
        one = _differ(before.get(key, _ABSENT), after.get(key, _ABSENT), item(schema))
        found.hang(key, one)
    return found

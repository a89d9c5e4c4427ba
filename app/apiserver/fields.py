"""Sets of field paths, in the very form in which ``managedFields`` keeps them (FieldsV1, KEP-555).

A set is a tree of maps. A key is ``f:<field>``, ``k:<keys of a list item>`` or ``v:<value of a set item>``; a node that
is empty or has ``"."`` is itself a member; the root never is, so an empty root is the empty set. Working on this form
directly spares a conversion at every write. Nothing here changes its arguments; results may share parts with them.
"""

import json
from collections.abc import Iterator
from typing import Any

import orjson

Fields = dict[str, Any]


def is_sound(value: Any) -> bool:
    """Whether something that a client sent is a set of fields."""
    return (
        isinstance(value, dict)
        and all(key == "." or key[:2] in ("f:", "k:", "v:") for key in value)
        and all(map(is_sound, value.values()))
    )


def is_member(node: Fields) -> bool:
    return not node or "." in node


def node(member: bool, below: Fields) -> Fields | None:
    """A node from its parts; None when there is nothing in it."""
    if not below:
        return {} if member else None
    return {".": {}, **below} if member else below


def union(left: Fields, right: Fields) -> Fields:
    if not left or not right:
        return left or right
    return _union_below(left, right)


def _union_below(left: Fields, right: Fields) -> Fields:
    merged = {key: value for key, value in left.items() if key != "."}
    for key, value in right.items():
        if key == ".":
            continue
        present = merged.get(key)
        merged[key] = value if present is None else _union_node(present, value)
    return merged


def _union_node(left: Fields, right: Fields) -> Fields:
    made = node(is_member(left) or is_member(right), _union_below(left, right))
    return made if made is not None else {}


def difference(left: Fields, right: Fields) -> Fields:
    """Members of `left` that are no members of `right`."""
    kept: Fields = {}
    for key, value in left.items():
        if key == ".":
            continue
        other = right.get(key)
        rest = value if other is None else _difference_node(value, other)
        if rest is not None:
            kept[key] = rest
    return kept


def _difference_node(left: Fields, right: Fields) -> Fields | None:
    return node(is_member(left) and not is_member(right), difference(left, right))


def intersection(left: Fields, right: Fields) -> Fields:
    shared: Fields = {}
    for key, value in left.items():
        if key == "." or key not in right:
            continue
        other = right[key]
        both = node(is_member(value) and is_member(other), intersection(value, other))
        if both is not None:
            shared[key] = both
    return shared


def paths(fields: Fields, prefix: str = "") -> Iterator[str]:
    """Members as people read them: ``.spec.replicas``, ``.status.conditions[type="Ready"].status``."""
    for key, value in fields.items():
        if key == ".":
            continue
        where = prefix + _printed(key)
        if is_member(value):
            yield where
        yield from paths(value, where)


def _printed(key: str) -> str:
    how, _, what = key.partition(":")
    if how == "f":
        return f".{what}"
    if how == "v":
        return f"[={what}]"
    try:
        keys = json.loads(what)
    except ValueError:
        return f"[{what}]"
    return f"[{','.join(f'{name}={json.dumps(value)}' for name, value in keys.items())}]"


def set_key(value: Any) -> str:
    return f"v:{_compact(value)}"


def map_key(keys: dict[str, Any]) -> str:
    return f"k:{_compact(keys)}"


def _compact(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()

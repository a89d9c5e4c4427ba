"""Which elements of a list repeat another one, where the schema says that the list is a set or a map?

Two conditions of one type, two pod sets of one name: server-side apply could not tell them apart, so Kubernetes refuses
them, and so do we. Compiled from the schema once; parts of it without such lists cost nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.errors import FieldError
from app.intake.kinds.place import Place

Search = Callable[[Place], Iterator[FieldError]]


def compiled(schema: Mapping[str, Any]) -> Search:
    """A function from a place to the repeated elements below it."""
    return _search(schema) or _nothing


def _nothing(place: Place) -> Iterator[FieldError]:  # noqa: ARG001 (the shape of `Search`)
    return iter(())


def _search(schema: Mapping[str, Any]) -> Search | None:
    if "properties" in schema:
        found = {
            name: search for name, prop in schema["properties"].items() if (search := _search(prop))
        }
        return _in_fields(found) if found else None
    if "items" not in schema:
        return None
    below = _search(schema["items"])
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return _in_list(tuple(schema["x-kubernetes-list-map-keys"]), below)
        case "set":
            return _in_list((), below)
    return _in_list(None, below) if below else None


def _in_fields(searches: Mapping[str, Search]) -> Search:
    def search(place: Place) -> Iterator[FieldError]:
        if isinstance(place.value, dict):
            for name in searches.keys() & place.value.keys():
                yield from searches[name](place.at(name))

    return search


def _in_list(keys: tuple[str, ...] | None, below: Search | None) -> Search:
    """`keys` identify an element; none of them means the whole element does, None means nothing does."""

    def search(place: Place) -> Iterator[FieldError]:
        seen = set()
        for item in place.items():
            if keys is not None:
                identity = _identity(item.value, keys)
                if identity is not None and identity in seen:
                    yield Place(_shown(item.value, keys), item.path).duplicate()
                seen.add(identity)
            if below:
                yield from below(item)

    return search


def _identity(value: Any, keys: tuple[str, ...]) -> Any:
    if not keys:
        return value if isinstance(value, str | int) else None
    if not isinstance(value, dict):
        return None
    found = tuple(value.get(key) for key in keys)
    return found if all(part is None or isinstance(part, str | int) for part in found) else None


def _shown(value: Any, keys: tuple[str, ...]) -> Any:
    return {key: value[key] for key in keys if key in value} if keys else value

"""Which elements of a list repeat another one, where the schema says that the list is a set or a map?

Two conditions of one type, two pod sets of one name: server-side apply could not tell them apart, so Kubernetes refuses
them, and so do we. Compiled from the schema once; parts of it without such lists cost nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.errors import FieldError
from app.intake.kinds.place import Place

#: From a value to the path below it and the identity of each repeated element.
_Search = Callable[[Any], Iterator[tuple[str, Any]]]
Search = Callable[[Any], list[FieldError]]


def compiled(schema: Mapping[str, Any]) -> Search:
    """A function from a manifest to the faults of its repeated elements."""
    search = _search(schema)

    def found(manifest: Any) -> list[FieldError]:
        repeated = search(manifest) if search else ()
        return [Place(identity, path.removeprefix(".")).duplicate() for path, identity in repeated]

    return found


def _search(schema: Mapping[str, Any]) -> _Search | None:
    if "properties" in schema:
        below = {
            name: search for name, prop in schema["properties"].items() if (search := _search(prop))
        }
        return _in_fields(below) if below else None
    if "items" not in schema:
        return None
    inside = _search(schema["items"])
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return _in_list(tuple(schema["x-kubernetes-list-map-keys"]), inside)
        case "set":
            return _in_list((), inside)
    return _in_list(None, inside) if inside else None


def _in_fields(searches: Mapping[str, _Search]) -> _Search:
    def search(value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, dict):
            for name, below in searches.items():
                if name in value:
                    for path, identity in below(value[name]):
                        yield f".{name}{path}", identity

    return search


def _in_list(keys: tuple[str, ...] | None, inside: _Search | None) -> _Search:
    """`keys` identify an element; none of them means the whole element does, None means nothing does."""

    def search(value: Any) -> Iterator[tuple[str, Any]]:
        seen = set()
        for index, item in enumerate(value if isinstance(value, list) else ()):
            if keys is not None:
                identity = _identity(item, keys)
                if identity is not None and identity in seen:
                    yield f"[{index}]", _shown(item, keys)
                seen.add(identity)
            if inside:
                for path, repeated in inside(item):
                    yield f"[{index}]{path}", repeated

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

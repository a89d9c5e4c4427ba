"""What does a strategic merge patch make of an object?

The patch format that kubectl uses for built-in kinds, as Kubernetes' strategic merge defines it: maps merge, null
removes, and lists merge item by item where the field's items have a key; all other lists are replaced. Directives:
``$patch`` (merge, replace, delete), ``$retainKeys``, ``$setElementOrder/<list>``, ``$deleteFromPrimitiveList/<list>``.
The real keys hang on Go types; here they hang on field names, which suffices for the kinds that are served. Pure.
"""

from collections.abc import Mapping
from typing import Any

from app.core.manifests import Manifest
from app.errors import BadRequest

_KEYS: Mapping[str, str] = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
    "webhooks": "name",
}
_PRIMITIVE = ("finalizers",)
_ORDER = "$setElementOrder/"
_REMOVE = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"
_DIRECTIVE = "$patch"


def merged(target: Manifest, patch: Any) -> Manifest:
    """Return the patched object; neither argument is changed."""
    if not isinstance(patch, dict):
        raise BadRequest("a strategic merge patch is a JSON object")
    return _map(target, patch)


def _map(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    if patch.get(_DIRECTIVE) == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if patch.get(_DIRECTIVE) == "delete":
        return {}
    result = dict(target)
    retained = patch.get(_RETAIN)
    if retained is not None:
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if not key.startswith("$"):
            _field(result, key, value)
    for key, value in patch.items():
        if key.startswith(_REMOVE):
            _remove_primitives(result, key.removeprefix(_REMOVE), value)
        elif key.startswith(_ORDER):
            _order(result, key.removeprefix(_ORDER), value)
    return result


def _field(result: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        before = result.get(key)
        result[key] = _map(before if isinstance(before, dict) else {}, value)
    elif isinstance(value, list):
        result[key] = _list(key, result.get(key) or [], value)
    else:
        result[key] = value


def _list(field: str, target: list[Any], patch: list[Any]) -> list[Any]:
    if field in _PRIMITIVE:
        return [*target, *(one for one in patch if one not in target)]
    key = _KEYS.get(field)
    if key is None or not all(isinstance(one, dict) for one in patch):
        return patch
    replaces = any(one.get(_DIRECTIVE) == "replace" for one in patch)
    found = {} if replaces else {one.get(key): one for one in target}
    for one in patch:
        if one.get(_DIRECTIVE) == "replace" and len(one) == 1:
            continue
        if key not in one:
            raise BadRequest(f"map: {one} does not contain declared merge key: {key}")
        if one.get(_DIRECTIVE) == "delete":
            found.pop(one[key], None)
        else:
            found[one[key]] = _map(found.get(one[key], {}), one)
    return list(found.values())


def _remove_primitives(result: dict[str, Any], field: str, values: list[Any]) -> None:
    result[field] = [one for one in result.get(field) or [] if one not in values]


def _order(result: dict[str, Any], field: str, wanted: list[Any]) -> None:
    """Bring the items that are named into the wanted order; others keep their place behind."""
    items = result.get(field)
    if not isinstance(items, list):
        return
    key = _KEYS.get(field)
    names = [one.get(key) if key and isinstance(one, dict) else one for one in wanted]

    def rank(item: Any) -> int:
        name = item.get(key) if key and isinstance(item, dict) else item
        return names.index(name) if name in names else len(names)

    result[field] = sorted(items, key=rank)

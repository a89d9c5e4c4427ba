"""The rules of ``metadata`` that hold for every kind.

Shapes first (wrong types are a 400, as when a real apiserver cannot decode), then contents (422 with field paths). What
the server owns (uid, creationTimestamp, generation, deletion) is stamped here and can never be set by a client.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from app.errors import BadRequest, FieldError

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAMESPACE = re.compile(_LABEL)
_TOKEN = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ANNOTATIONS_LIMIT = 256 * 1024
_SHAPES: Mapping[str, type] = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "uid": str,
    "resourceVersion": str,
    "labels": dict,
    "annotations": dict,
    "finalizers": list,
    "ownerReferences": list,
    "managedFields": list,
}
# Kept from the stored object whatever an update says.
_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "namespace",
    "generateName",
)


def timestamp(now: datetime) -> str:
    """RFC 3339 in UTC to the second, as Kubernetes writes times."""
    return now.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat() + "Z"


def check_shape(manifest: Any) -> Manifest:
    """A JSON object with well-typed metadata; empty metadata entries are dropped."""
    if not isinstance(manifest, dict):
        raise BadRequest("the body must be one object")
    metadata = manifest.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise BadRequest("metadata must be an object")
    for name, shape in _SHAPES.items():
        value = metadata.get(name)
        if value is not None and not isinstance(value, shape):
            raise BadRequest(f"metadata.{name} must be {_words(shape)}")
    for name in ("labels", "annotations"):
        _check_strings(f"metadata.{name}", (metadata.get(name) or {}).values())
    _check_strings("metadata.finalizers", metadata.get("finalizers") or ())
    if not all(isinstance(owner, dict) for owner in metadata.get("ownerReferences") or ()):
        raise BadRequest("metadata.ownerReferences must be a list of objects")
    manifest["metadata"] = {key: value for key, value in metadata.items() if value is not None}
    return manifest


def _words(shape: type) -> str:
    return {"str": "a string", "dict": "a map of strings"}.get(shape.__name__, "a list")


def _check_strings(path: str, values: Any) -> None:
    if not all(isinstance(value, str) for value in values):
        raise BadRequest(f"{path} must hold strings only")


def stamp_new(manifest: Manifest, uid: str, now: datetime) -> None:
    metadata = manifest["metadata"]
    for name in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(name, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = timestamp(now)
    metadata["generation"] = 1


def carry_over(new: Manifest, old: Manifest) -> None:
    """Give `new` everything in `old` that only the server may set."""
    metadata, before = new["metadata"], old["metadata"]
    metadata.pop("selfLink", None)
    for name in (*_SERVER_OWNED, "name", "resourceVersion"):
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)


def check(manifest: Manifest, old: Manifest | None) -> list[FieldError]:
    metadata = manifest["metadata"]
    faults = [] if old else _check_names(metadata)
    for key, value in (metadata.get("labels") or {}).items():
        faults += _check_key("metadata.labels", key)
        if value and not (len(value) <= 63 and _TOKEN.fullmatch(value)):
            faults.append(_fault("metadata.labels", value, _LABEL_VALUE_RULE))
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        faults += _check_key("metadata.annotations", key.lower())
    if (
        sum(len(key) + len(value.encode()) for key, value in annotations.items())
        > _ANNOTATIONS_LIMIT
    ):
        faults.append(
            FieldError(
                "metadata.annotations",
                f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes",
                "FieldValueTooLong",
            )
        )
    return faults + _check_finalizers(metadata, old) + _check_owners(metadata)


_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character, at most 63 characters"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character, with an optional DNS subdomain prefix and '/'"
)


def _fault(path: str, value: Any, rule: str) -> FieldError:
    return FieldError(path, f'Invalid value: "{value}": {rule}')


def valid_name(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def _check_names(metadata: Manifest) -> list[FieldError]:
    faults = []
    name = metadata.get("name", "")
    if not name:
        faults.append(
            FieldError(
                "metadata.name",
                "Required value: name or generateName is required",
                "FieldValueRequired",
            )
        )
    elif not valid_name(name):
        faults.append(_fault("metadata.name", name, _NAME_RULE))
    namespace = metadata.get("namespace")
    if namespace is not None and not (len(namespace) <= 63 and _NAMESPACE.fullmatch(namespace)):
        faults.append(_fault("metadata.namespace", namespace, "must be a lowercase RFC 1123 label"))
    return faults


def _check_key(path: str, key: str) -> list[FieldError]:
    prefix, slash, name = key.rpartition("/")
    good_name = len(name) <= 63 and _TOKEN.fullmatch(name)
    good_prefix = valid_name(prefix) if slash else True
    return [] if good_name and good_prefix else [_fault(path, key, _KEY_RULE)]


def _check_finalizers(metadata: Manifest, old: Manifest | None) -> list[FieldError]:
    finalizers = metadata.get("finalizers") or []
    faults = [fault for name in finalizers for fault in _check_key("metadata.finalizers", name)]
    if old and old["metadata"].get("deletionTimestamp"):
        known = old["metadata"].get("finalizers") or []
        added = [name for name in finalizers if name not in known]
        if added:
            faults.append(
                FieldError(
                    "metadata.finalizers",
                    "Forbidden: no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers {added}",
                    "FieldValueForbidden",
                )
            )
    return faults


def _check_owners(metadata: Manifest) -> list[FieldError]:
    faults = []
    controllers = 0
    for index, owner in enumerate(metadata.get("ownerReferences") or []):
        controllers += owner.get("controller") is True
        for name in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(owner.get(name), str) or not owner[name]:
                path = f"metadata.ownerReferences[{index}].{name}"
                faults.append(FieldError(path, "Required value", "FieldValueRequired"))
    if controllers > 1:
        rule = "Only one reference can have Controller set to true"
        faults.append(_fault("metadata.ownerReferences", "", rule))
    return faults


def same_place(manifest: Manifest, kind: Kind, namespace: str | None, name: str | None) -> None:
    """Make the body agree with the URL, or say where it does not."""
    metadata = manifest["metadata"]
    if kind.namespaced and metadata.get("namespace", namespace) != namespace:
        raise BadRequest(
            f"the namespace of the provided object does not match the namespace sent on the request "
            f"({metadata['namespace']} instead of {namespace})"
        )
    if not kind.namespaced and metadata.get("namespace"):
        raise BadRequest("namespace must be empty: this kind is not namespaced")
    if kind.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if name is not None and metadata.get("name", name) != name:
        raise BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    if name is not None:
        metadata["name"] = name

"""The OpenAPI v3 documents: what ``kubectl explain``, ``apply`` and ``edit`` read.

One document a group and version, built once. kubectl decides from the PATCH operation's ``fieldValidation`` parameter
that the server validates, from ``dryRun`` that it can do dry runs, and finds kinds by their
``x-kubernetes-group-version-kind``. The index gives each document's hash, so that clients keep it until it changes.
"""

import hashlib
from typing import Any

from app.apiserver.encoding import encode
from app.apiserver.paths import unknown_path
from app.apiserver.registry import Registry, Served
from app.core.manifests import Manifest

_QUERY = {
    "dryRun": ("string", "All: check everything and store nothing."),
    "fieldManager": ("string", "Who makes this change, for managedFields."),
    "fieldValidation": (
        "string",
        "Ignore, Warn or Strict: what unknown and duplicate fields mean.",
    ),
    "force": ("boolean", "Take over fields that another manager owns; server-side apply only."),
    "labelSelector": ("string", "Only objects with these labels."),
    "fieldSelector": ("string", "Only objects with these field values."),
    "limit": ("integer", "At most so many objects; the rest by continue."),
    "continue": ("string", "The token of the previous page."),
    "resourceVersion": ("string", "How fresh the answer must be, or where a watch begins."),
    "watch": ("boolean", "Stream changes instead of listing."),
    "allowWatchBookmarks": ("boolean", "Send bookmarks on a watch."),
    "sendInitialEvents": ("boolean", "Begin a watch with the present state."),
    "timeoutSeconds": ("integer", "End the watch after so long."),
}
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = tuple(name for name in _QUERY if name not in (*_WRITE, "force"))
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)


_V2: Manifest = {
    "swagger": "2.0",
    "info": {"title": "See /openapi/v3", "version": "v1"},
    "paths": {},
}


def empty_v2(accept: str) -> tuple[bytes, str]:
    """An OpenAPI v2 document without definitions, and its media type.

    kubectl wants one, as protobuf, before it takes a file of ``kind: List``; finding nothing in it, it leaves
    validation to the server.
    """
    if "protobuf" not in accept:
        return encode(_V2), "application/json"
    info = _text(1, _V2["info"]["title"]) + _text(2, _V2["info"]["version"])
    document = _text(1, _V2["swagger"]) + _field(2, info) + _field(8, b"")
    return document, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, value: bytes) -> bytes:
    """A length-delimited protobuf field, shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


class OpenApi:
    def __init__(self, registry: Registry) -> None:
        self._documents: dict[str, bytes] = {}
        for group in registry.groups.values():
            for version, served in group.versions.items():
                path = f"apis/{group.name}/{version}" if group.name else f"api/{version}"
                self._documents[path] = encode(_document(served))

    def index(self) -> Manifest:
        return {
            "paths": {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(document)}"}
                for path, document in self._documents.items()
            }
        }

    def document(self, path: str) -> tuple[bytes, str]:
        """The document and its hash."""
        found = self._documents.get(path)
        if found is None:
            raise unknown_path()
        return found, _hash(found)


def _hash(document: bytes) -> str:
    return hashlib.sha256(document).hexdigest().upper()


def _document(served: list[Served]) -> Manifest:
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for one in served:
        schemas[_name(one)] = _schema(one)
        schemas[f"{_name(one)}List"] = _list_schema(one)
        paths.update(_paths(one))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes-shaped API", "version": served[0].version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _name(served: Served) -> str:
    """``io.x-k8s.kueue.v1beta2.ClusterQueue``, as Kubernetes names schemas of CRDs."""
    group = served.kind.group or "core"
    return ".".join([*reversed(group.split(".")), served.version, served.kind.kind])


def _type(served: Served, suffix: str = "") -> Manifest:
    kind = served.kind
    return {"group": kind.group, "kind": f"{kind.kind}{suffix}", "version": served.version}


def _schema(served: Served) -> Manifest:
    return {**served.schema, "x-kubernetes-group-version-kind": [_type(served)]}


def _list_schema(served: Served) -> Manifest:
    return {
        "type": "object",
        "description": f"A list of {served.kind.kind}.",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"resourceVersion": {"type": "string"}}},
            "items": {"type": "array", "items": _ref(served)},
        },
        "x-kubernetes-group-version-kind": [_type(served, "List")],
    }


def _ref(served: Served, suffix: str = "") -> Manifest:
    return {"$ref": f"#/components/schemas/{_name(served)}{suffix}"}


def _paths(served: Served) -> dict[str, Any]:
    kind = served.kind
    root = f"/apis/{served.api_version}" if kind.group else f"/api/{served.version}"
    everywhere = f"{root}/{kind.plural}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else everywhere
    reading = {"get": _operation(served, "list", _LIST, "List")}
    paths: dict[str, Any] = {
        everywhere: reading,
        collection: {
            **reading,
            "post": _operation(served, "post", _WRITE),
            "delete": _operation(served, "deletecollection", (*_LIST, "dryRun")),
        },
        f"{collection}/{{name}}": {
            **_item(served),
            "delete": _operation(served, "delete", ("dryRun",)),
        },
    }
    if kind.status:
        paths[f"{collection}/{{name}}/status"] = _item(served)
    return paths


def _item(served: Served) -> Manifest:
    return {
        "get": _operation(served, "get", ()),
        "put": _operation(served, "put", _WRITE),
        "patch": _operation(served, "patch", (*_WRITE, "force")),
    }


def _operation(served: Served, action: str, query: tuple[str, ...], suffix: str = "") -> Manifest:
    operation: Manifest = {
        "parameters": [_parameter(name) for name in query],
        "responses": {
            "200": {
                "description": "OK",
                "content": {"application/json": {"schema": _ref(served, suffix)}},
            }
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _type(served),
    }
    if action in ("post", "put"):
        operation["requestBody"] = {"content": {"application/json": {"schema": _ref(served)}}}
    if action == "patch":
        operation["requestBody"] = {
            "content": {media: {"schema": {"type": "object"}} for media in _PATCHES}
        }
    return operation


def _parameter(name: str) -> Manifest:
    type_, description = _QUERY[name]
    return {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": type_, "uniqueItems": True},
    }

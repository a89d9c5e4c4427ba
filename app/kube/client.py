"""How is an object of one cluster read, written, or its kind followed?

One `KubeClient` per cluster. Every call has a time limit, every failure is a `KubeError`, and no call is repeated on
failure: retries and their pace are the caller's, who reads the object first. Objects go in and come out as plain
manifests; a partial model is never sent back. Changes are merge, JSON or server-side-apply patches, and whoever needs
one to be safe puts uid and resourceVersion into the patch itself.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import orjson
from aiohttp import ClientTimeout

from app.core.manifests import Manifest
from app.kube import errors
from app.kube.config import ClusterConfig
from app.kube.resources import Resource
from app.kube.transport import Call, Transport

PatchType = Literal["merge", "json", "strategic"]
FIELD_MANAGER = "sluice"
PAGE = 500

_CONTENT_TYPES: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_APPLY = "application/apply-patch+yaml"
_LIST_RESTARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind: one namespace or all; label and field selectors as kubectl writes them."""

    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None

    def query(self) -> dict[str, str]:
        found = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in found.items() if value}


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStart:
    """Where a watch begins, when the server shall end it, and how long silence is believed."""

    resource_version: str
    timeout_s: int
    silence_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectList:
    items: list[Manifest]
    resource_version: str


class KubeClient:
    """Use as ``async with KubeClient(config) as client``, or call `open` and `close`."""

    def __init__(self, config: ClusterConfig) -> None:
        self.config = config
        self._transport = Transport(config)

    async def open(self) -> Self:
        await self._transport.open()
        return self

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """GET any path: discovery, ``/version``, OpenAPI."""
        return await self._json(Call(method="GET", path=path, query=query or {}))

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Manifest:
        return await self._object(Call(method="GET", path=resource.path(namespace, name)))

    async def list(
        self, resource: Resource, selection: Selection = EVERYTHING, *, limit: int = PAGE
    ) -> ObjectList:
        """Every object, page by page; begun again when the cluster no longer has the snapshot paged through."""
        restarts = _LIST_RESTARTS
        while True:
            try:
                return await self._list(resource, selection, limit)
            except errors.KubeGone:
                restarts -= 1
                if restarts == 0:
                    raise

    async def _list(self, resource: Resource, selection: Selection, limit: int) -> ObjectList:
        items: list[Manifest] = []
        token = ""
        while True:
            page = await self._object(_page(resource, selection, limit, token))
            kind = str(page.get("kind", "")).removesuffix("List")
            named = {"apiVersion": page.get("apiVersion", ""), "kind": kind}
            items += [{**named, **item} for item in page.get("items") or ()]
            metadata = page.get("metadata") or {}
            token = metadata.get("continue") or ""
            if not token:
                version = str(metadata.get("resourceVersion", ""))
                return ObjectList(items=items, resource_version=version)

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = PAGE, token: str = ""
    ) -> bytes:
        """One page as it came; `token` is the ``continue`` of the page before."""
        return await self._transport.read(_page(resource, selection, limit, token))

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        manifest: Manifest,
        *,
        dry_run: bool = False,
    ) -> Manifest:
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        return await self._write("POST", resource.path(namespace), manifest, query=query)

    async def replace(
        self,
        resource: Resource,
        namespace: str | None,
        manifest: Manifest,
        *,
        subresource: str | None = None,
    ) -> Manifest:
        """Write back a manifest that was read whole; the resourceVersion in it guards the write."""
        path = resource.path(namespace, manifest["metadata"]["name"], subresource)
        return await self._write("PUT", path, manifest)

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Any,
        *,
        patch_type: PatchType = "merge",
        subresource: str | None = None,
    ) -> Manifest:
        path = resource.path(namespace, name, subresource)
        return await self._write("PATCH", path, body, content_type=_CONTENT_TYPES[patch_type])

    async def apply(
        self,
        resource: Resource,
        namespace: str | None,
        manifest: Manifest,
        *,
        subresource: str | None = None,
        force: bool = False,
    ) -> Manifest:
        """Server-side apply under our field manager."""
        path = resource.path(namespace, manifest["metadata"]["name"], subresource)
        query = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"}
        return await self._write("PATCH", path, manifest, query=query, content_type=_APPLY)

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete; with `uid` or `resource_version` only that very object or version (409 otherwise)."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: Manifest = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {key: value for key, value in preconditions.items() if value},
        }
        await self._write("DELETE", resource.path(namespace, name), options, query={})

    def watch(
        self, resource: Resource, selection: Selection, start: WatchStart
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The raw stream of a watch with bookmarks; reading raises `KubeUnavailable` after too long a silence."""
        query = {
            **selection.query(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": start.resource_version,
            "timeoutSeconds": str(start.timeout_s),
        }
        timeout = ClientTimeout(
            total=None,
            sock_connect=self.config.limits.connect_timeout_s,
            sock_read=start.silence_s,
        )
        path = resource.path(selection.namespace)
        return self._transport.stream(Call(method="GET", path=path, query=query, timeout=timeout))

    async def _write(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        call = Call(
            method=method,
            path=path,
            query={"fieldManager": FIELD_MANAGER} if query is None else query,
            body=orjson.dumps(body),
            content_type=content_type,
        )
        return await self._object(call)

    async def _object(self, call: Call) -> Manifest:
        document = await self._json(call)
        if not isinstance(document, dict):
            raise errors.unanswered(str(call), "the answer is no object")
        return document

    async def _json(self, call: Call) -> Any:
        body = await self._transport.read(call)
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise errors.unanswered(str(call), "the answer is broken JSON") from error


def _page(resource: Resource, selection: Selection, limit: int, token: str) -> Call:
    """A consistent read: no resourceVersion is named, so no cache's past can answer."""
    query = {**selection.query(), "limit": str(limit)}
    if token:
        query["continue"] = token
    return Call(method="GET", path=resource.path(selection.namespace), query=query)

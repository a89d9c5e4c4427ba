"""A small apiserver for one kind, over real HTTP, that can be told to misbehave.

It keeps objects and a log of changes, serves paged lists and watches, and notes every request with its time. A *fault*
is a handler that takes the place of the next watch (or list) request; faults are used up in order, one a request.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Manifest = dict[str, Any]


class Api:
    def __init__(self) -> None:
        self.objects: dict[str, Manifest] = {}
        self.log: list[tuple[int, str, Manifest]] = []
        self.version = 100
        self.horizon = 0
        self.watch_faults: deque[Handler] = deque()
        self.list_faults: deque[Handler] = deque()
        self.requests: list[tuple[float, str, dict[str, str]]] = []
        self.url = ""
        self._changed = asyncio.Condition()

    def put(self, name: str, uid: str = "", **spec: Any) -> Manifest:
        self.version += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        old = self.objects.get(name)
        manifest = {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": uid or (old["metadata"]["uid"] if old else f"uid-{name}"),
                "resourceVersion": str(self.version),
                "managedFields": [{"manager": "x", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": spec,
        }
        self.objects[name] = manifest
        self.log.append((self.version, kind, manifest))
        return manifest

    def remove(self, name: str, *, silently: bool = False) -> None:
        self.version += 1
        old = self.objects.pop(name)
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        if not silently:
            self.log.append((self.version, "DELETED", last))

    async def publish(self) -> None:
        """Let open watches see what has been put."""
        await asyncio.sleep(0)
        async with self._changed:
            self._changed.notify_all()

    def count(self, verb: str) -> int:
        return sum(1 for _, done, _ in self.requests if done == verb)

    def times(self, verb: str) -> list[float]:
        return [at for at, done, _ in self.requests if done == verb]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        verb = verb_of(request)
        now = asyncio.get_running_loop().time()
        self.requests.append((now, verb, dict(request.query)))
        faults = {"watch": self.watch_faults, "list": self.list_faults}.get(verb)
        if faults:
            return await faults.popleft()(request)
        return await (self.watch if verb == "watch" else self.list)(request)

    async def list(self, request: web.Request) -> web.StreamResponse:
        limit = int(request.query.get("limit", "500"))
        start = int(request.query.get("continue", "0"))
        names = sorted(self.objects)
        page = [self.objects[name] for name in names[start : start + limit]]
        metadata: Manifest = {"resourceVersion": str(self.version)}
        if start + limit < len(names):
            metadata["continue"] = str(start + limit)
        return web.json_response(
            {"kind": "WidgetList", "apiVersion": "x.dev/v1", "metadata": metadata, "items": page}
        )

    async def watch(self, request: web.Request) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self.horizon:
            return gone()
        response = await stream(request)
        while True:
            for version, kind, manifest in self.log:
                if version > since:
                    await response.write(event(kind, manifest))
                    since = version
            async with self._changed:
                await self._changed.wait()


def verb_of(request: web.Request) -> str:
    """A list of one object is a look at the cluster's version, not a list."""
    if request.query.get("watch"):
        return "watch"
    return "look" if request.query.get("limit") == "1" else "list"


def event(kind: str, manifest: Manifest) -> bytes:
    whole = {"apiVersion": "x.dev/v1", "kind": "Widget", **manifest}
    return json.dumps({"type": kind, "object": whole}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def expired() -> bytes:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


def gone() -> web.Response:
    body = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    return web.json_response(body, status=410)


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    return response


def says(*pieces: bytes, cut: bool = False, hold: bool = False) -> Handler:
    """A watch that sends `pieces`, then ends well, is cut off, or stays open in silence."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        for piece in pieces:
            await response.write(piece)
        if cut:
            await asyncio.sleep(0.02)
            assert request.transport is not None
            request.transport.abort()
        if hold:
            await asyncio.sleep(3600)
        return response

    return handler


def answers(
    status: int, text: str = "", content_type: str = "text/html", **headers: str
) -> Handler:
    async def handler(_request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text, content_type=content_type, headers=named)

    return handler


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """Serve every path with `handler` on loopback; the URL comes out. Open connections are cut at the end."""

    async def entry(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", entry)
    runner = web.AppRunner(
        application, shutdown_timeout=0.05, handler_cancellation=True, access_log=None
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def running_api() -> AsyncIterator[Api]:
    api = Api()
    async with serving(api.handle) as url:
        api.url = url
        yield api

"""How do requests in kubectl's own dialects reach an API server that does not speak them?

An ASGI layer: a strategic merge patch becomes a PUT of the patched object, with the version it was made from, and is
made again if the object moved meanwhile; the protobuf of ``kubectl create namespace`` becomes JSON; and a deletion that
takes its time is answered with what is left.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.apiserver.errors import status_of
from app.apiserver.paths import Target
from app.core.manifests import Manifest
from app.errors import AppError, BadRequest
from app.sandbox.dialects.protobuf import MEDIA_TYPE, read_namespace
from app.sandbox.dialects.strategic import merged
from app.sandbox.requests import read_whole, target_of

_STRATEGIC = "application/strategic-merge-patch+json"
_ATTEMPTS = 5

Find = Callable[[Target], Awaitable[Manifest | None]]


class DialectLayer:
    """`find` gets the stored object that a URL names."""

    def __init__(self, app: ASGIApp, find: Find) -> None:
        self._app = app
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        media = _media_type(scope) if scope["type"] == "http" else ""
        try:
            if scope["type"] == "http" and scope["method"] == "PATCH" and media == _STRATEGIC:
                await self._patch(scope, receive, send)
            elif scope["type"] == "http" and scope["method"] == "DELETE":
                await self._delete(scope, receive, send)
            elif media == MEDIA_TYPE and _creates_namespace(scope):
                body = orjson.dumps(read_namespace(await read_whole(receive)))
                await self._app(_as_json(scope, "POST"), _giving(body, receive), send)
            else:
                await self._app(scope, receive, send)
        except AppError as error:
            await _refuse(error, send)

    async def _delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What a deletion leaves for a while (a grace period, finalizers) is the answer to it."""
        target = target_of(scope["path"])
        if target is None or target.name is None:
            await self._app(scope, receive, send)
            return
        answer: list[Message] = []
        await self._app(scope, receive, _kept(answer))
        left = await self._find(target)
        if answer[0]["status"] == 200 and left is not None and "dryRun" not in _query(scope):
            await _send_json(200, left, send)
            return
        for message in answer:
            await send(message)

    async def _patch(self, scope: Scope, receive: Receive, send: Send) -> None:
        patch, target = _parsed(await read_whole(receive)), target_of(scope["path"])
        for attempt in range(_ATTEMPTS):
            current = None if target is None else await self._find(target)
            if current is None:
                await self._app(
                    {**scope, "method": "GET"}, receive, send
                )  # it says what is missing
                return
            new = merged(current, patch)
            answer: list[Message] = []
            await self._app(
                _as_json(scope, "PUT"),
                _giving(orjson.dumps(new), receive),
                _kept(answer),
            )
            moved = answer[0]["status"] == 409 and "resourceVersion" not in _metadata(patch)
            if not moved or attempt == _ATTEMPTS - 1:
                break
        for message in answer:
            await send(message)


def _metadata(patch: Any) -> Any:
    return patch.get("metadata") or {}


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        patch = json.loads(body)
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(patch, dict):
        raise BadRequest("a strategic merge patch is a JSON object")
    return patch


def _media_type(scope: Scope) -> str:
    header = next((value for key, value in scope["headers"] if key == b"content-type"), b"")
    return bytes(header).decode("latin-1").partition(";")[0].strip().lower()


def _creates_namespace(scope: Scope) -> bool:
    return bool(scope["method"] == "POST" and scope["path"] == "/api/v1/namespaces")


def _as_json(scope: Scope, method: str) -> Scope:
    replaced = (b"content-type", b"content-length")
    headers = [(key, value) for key, value in scope["headers"] if key not in replaced]
    return {
        **scope,
        "method": method,
        "headers": [*headers, (b"content-type", b"application/json")],
    }


def _giving(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def giving() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return giving


def _kept(answer: list[Message]) -> Send:
    async def keeping(message: Message) -> None:
        answer.append(message)

    return keeping


async def _refuse(error: AppError, send: Send) -> None:
    await _send_json(error.status, status_of(error), send)


async def _send_json(status: int, body: Manifest, send: Send) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(body)})


def _query(scope: Scope) -> str:
    return bytes(scope["query_string"]).decode("latin-1")

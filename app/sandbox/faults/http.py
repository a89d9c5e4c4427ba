"""How do faults reach the clients: the ASGI layer in front of the API server.

To close a connection without an answer the layer needs the transport itself, which ASGI does not show; the server runs
with `TransportProtocol`, which puts it into the scope.
"""

import asyncio
from contextvars import ContextVar
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.sandbox.faults.plan import Fault, Faults
from app.sandbox.requests import target_of, verb_of

_TRANSPORT = "sandbox.transport"
_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

_connection: ContextVar[asyncio.Transport | None] = ContextVar("sandbox_connection", default=None)


class TransportProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, telling the application which connection it speaks on."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[_TRANSPORT] = self.transport  # type: ignore[literal-required]


def break_connection() -> None:
    """Close the connection of the request that is being served, without a further byte."""
    transport = _connection.get()
    if transport is not None:
        transport.abort()


class FaultLayer:
    def __init__(self, app: ASGIApp, faults: Faults) -> None:
        self._app = app
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = _connection.set(scope.get(_TRANSPORT))
        try:
            await self._serve(scope, receive, send)
        finally:
            _connection.reset(token)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self._faults.on_request(_verb(scope), scope["path"])
        await self._faults.until_answering()
        match None if fault is None else fault.kind:
            case "drop":
                break_connection()
            case "cut":
                await self._app(scope, receive, _swallow)
                break_connection()
            case "hang":
                await _until_disconnected(receive)
            case "status" if fault is not None:
                await _answer(fault, send)
            case _:
                if fault is not None:
                    await asyncio.sleep(fault.delay_s)
                await self._app(scope, receive, self._silenced(send))

    def _silenced(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if self._faults.silent:
                await self._faults.until_answering()
            await send(message)

        return sending


def _verb(scope: Scope) -> str:
    target = target_of(scope["path"])
    if target is None:
        return "get" if scope["method"] == "GET" else str(scope["method"]).lower()
    return verb_of(scope["method"], target, scope["query_string"].decode("latin-1"))


async def _swallow(_: Message) -> None:
    """Send nothing."""


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(fault: Fault, send: Send) -> None:
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"the sandbox was asked to answer {fault.status}",
        "reason": _REASONS.get(fault.status, "Unknown"),
        "code": fault.status,
    }
    headers = [(b"content-type", b"application/json")]
    if fault.retry_after_s is not None:
        status["details"] = {"retryAfterSeconds": fault.retry_after_s}
        headers.append((b"retry-after", str(fault.retry_after_s).encode()))
    await send({"type": "http.response.start", "status": fault.status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(status)})

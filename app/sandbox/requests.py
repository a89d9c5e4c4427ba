"""What does the request that is being served ask for, beyond what a storage is told?

Admission needs the operation and the subresource, and deletion the options in its body; the storage port carries
neither. `RequestReader` reads both before the API server sees the request and keeps them in a context variable for as
long as the request lasts. Controllers inside the cluster make their own `RequestInfo`.
"""

import json
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.apiserver.paths import Target, parse_path
from app.core.manifests import Manifest
from app.errors import NotFound

Operation = Literal["CREATE", "UPDATE", "DELETE"]

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_MAX_BODY_BYTES = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    grace_period_s: int | None = None
    propagation: str | None = None  # Background, Foreground or Orphan


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInfo:
    verb: str = "update"
    subresource: str = ""
    field_manager: str = ""
    delete: DeleteOptions = field(default_factory=DeleteOptions)
    warnings: list[str] = field(default_factory=list)  # what admission wants to tell the client

    def operation(self, current: Manifest | None) -> Operation:
        if self.verb in ("delete", "deletecollection"):
            return "DELETE"
        return "CREATE" if current is None else "UPDATE"


_current: ContextVar[RequestInfo | None] = ContextVar("sandbox_request", default=None)


def current_request() -> RequestInfo:
    return _current.get() or RequestInfo()


def verb_of(method: str, target: Target, query: str) -> str:
    """Return the verb as access rules name it."""
    verb = _VERBS.get(method, method.lower())
    if target.name is not None:
        return verb
    if verb == "get":
        watching = any(part in ("watch", "watch=true", "watch=1") for part in query.split("&"))
        return "watch" if watching else "list"
    return "deletecollection" if verb == "delete" else verb


def target_of(path: str) -> Target | None:
    """Return what an API path names; None for discovery and everything else."""
    match path.strip("/").split("/"):
        case ["api", version, *rest] if rest:
            return _parsed("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _parsed(group, version, rest)
        case _:
            return None


def _parsed(group: str, version: str, rest: list[str]) -> Target | None:
    try:
        return parse_path(group, version, "/".join(rest))
    except NotFound:
        return None


class RequestReader:
    """ASGI layer that makes `current_request` true."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        target = target_of(scope["path"]) if scope["type"] == "http" else None
        if target is None:
            await self._app(scope, receive, send)
            return
        query = scope["query_string"].decode("latin-1")
        verb = verb_of(scope["method"], target, query)
        options = DeleteOptions()
        if scope["method"] == "DELETE":
            body, receive = await _read(receive)
            options = _delete_options(body, query)
        info = RequestInfo(
            verb=verb,
            subresource=target.subresource,
            field_manager=_parameter(query, "fieldManager") or "",
            delete=options,
        )
        token = _current.set(info)
        try:
            await self._app(scope, receive, _with_warnings(send, info))
        finally:
            _current.reset(token)


def _with_warnings(send: Send, info: RequestInfo) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and info.warnings:
            headers = [(b"warning", _warning(text)) for text in info.warnings]
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return sending


def _warning(text: str) -> bytes:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'299 - "{quoted}"'.encode("latin-1", "replace")


async def read_whole(receive: Receive) -> bytes:
    """Read a body of moderate size; what is beyond it is left unread."""
    body, more = b"", True
    while more and len(body) <= _MAX_BODY_BYTES:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False) and message["type"] == "http.request"
    return body


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """Read the body, and return a `receive` that gives it again."""
    body = await read_whole(receive)
    replay: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return replay.pop() if replay else await receive()

    return body, again


def _delete_options(body: bytes, query: str) -> DeleteOptions:
    """Read leniently: the API server refuses a body that is none."""
    try:
        options: Any = json.loads(body) if body else {}
    except ValueError:
        options = {}
    if not isinstance(options, dict):
        options = {}
    grace = options.get("gracePeriodSeconds", _parameter(query, "gracePeriodSeconds"))
    orphan = "Orphan" if options.get("orphanDependents") else None
    return DeleteOptions(
        grace_period_s=int(grace) if str(grace).isdecimal() else None,
        propagation=options.get("propagationPolicy")
        or _parameter(query, "propagationPolicy")
        or orphan,
    )


def _parameter(query: str, name: str) -> str | None:
    prefix = f"{name}="
    return next((part[len(prefix) :] for part in query.split("&") if part.startswith(prefix)), None)

"""What surrounds every request: its id, who asks, and what becomes of failures.

Nothing but health is answered without a user. Errors raised on purpose become their ``Status``; anything else is a
defect: it is logged with the request id, and the client is told that id and nothing more.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.apiserver.context import Attributes, Server
from app.apiserver.errors import error_response
from app.apiserver.storage import User
from app.errors import AppError, Unauthorized

_log = structlog.get_logger(__name__)

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_WARNING_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Call:
    """An authenticated request. Warnings are kept in order, each once, and sent as headers."""

    request: Request
    request_id: str
    user: User
    warnings: dict[str, None] = field(default_factory=dict)


Handler = Callable[[Call], Awaitable[ASGIApp]]


class Guarded:
    """An ASGI endpoint around one handler."""

    def __init__(self, server: Server, handler: Handler) -> None:
        self._server = server
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        request_id = _request_id(request) or self._server.new_uid()
        warnings: dict[str, None] = {}
        try:
            user = _named(await self._server.authenticate(request))
            response = await self._handler(Call(request, request_id, user, warnings))
        except ClientDisconnect:
            return
        except AppError as error:
            response = error_response(error)
        except Exception:  # noqa: BLE001 (the last resort: no traceback leaves)
            _log.exception("request failed", request_id=request_id, path=request.url.path)
            response = error_response(
                AppError(f"an internal error occurred; request id {request_id}")
            )
        await response(scope, receive, _with_headers(send, request_id, warnings))


def _named(user: User) -> User:
    if not user.name:
        raise Unauthorized("the request has no user")
    return user


def _request_id(request: Request) -> str | None:
    given = request.headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else None


def _with_headers(send: Send, request_id: str, warnings: Mapping[str, None]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            told = list(warnings)[:_WARNING_LIMIT]
            headers += [(b"warning", f'299 - "{_quoted(text)}"'.encode()) for text in told]
            message = {**message, "headers": headers}
        await send(message)

    return sending


def _quoted(text: str) -> str:
    """Safe within the quotes of a header: no control characters, ASCII only."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = "".join(letter if letter.isprintable() else " " for letter in plain)
    return plain.replace("\\", "\\\\").replace('"', '\\"')[:1000]


async def authorize_path(server: Server, call: Call) -> None:
    """For everything that is not an object: discovery, OpenAPI, version."""
    path = call.request.url.path
    verb = call.request.method.lower()
    await server.authorize(call.user, Attributes(verb=verb, path=path))

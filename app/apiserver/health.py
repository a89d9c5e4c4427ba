"""``/healthz``, ``/livez`` and ``/readyz``: the only answers that need no user, and they carry no data.

Being alive says that this process answers; being ready asks the function that the builder of the application gave.
"""

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from app.apiserver.context import Server

_log = structlog.get_logger(__name__)


class Health:
    """An ASGI endpoint; `server` is given where readiness is asked for."""

    def __init__(self, server: Server | None = None) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("method not allowed", 405, {"Allow": "GET, HEAD"})
        if self._server is None:
            return PlainTextResponse("ok")
        return await _readiness(self._server)


async def _readiness(server: Server) -> Response:
    if server.stopping.is_set():
        return PlainTextResponse("[-]shutdown: stopping\nreadyz check failed", 503)
    try:
        missing = await server.ready()
    except Exception:  # noqa: BLE001 (whatever it is, we are not ready)
        _log.exception("readiness could not be established")
        missing = {"readiness": "failed"}
    if not missing:
        return PlainTextResponse("ok")
    lines = [f"[-]{name}: {why}" for name, why in missing.items()]
    return PlainTextResponse("\n".join([*lines, "readyz check failed"]), 503)

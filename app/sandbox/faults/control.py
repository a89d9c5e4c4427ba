"""How does a test in another process ask for faults?

Under ``/sandbox`` on the cluster's own port, with its token. These paths are never struck by faults themselves.

    GET    /sandbox/faults        what is asked for, and how often each has struck
    POST   /sandbox/faults        one fault as JSON; answers {"id": ...}
    DELETE /sandbox/faults[/id]   one, or all (and answer again)
    POST   /sandbox/silence       stop answering, until DELETE /sandbox/silence
    POST   /sandbox/compact       forget the log: watches that are not up to date get 410
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import AppError, BadRequest, NotFound
from app.sandbox.faults.plan import Faults, read_fault

_PREFIX = "/sandbox/"


class ControlLayer:
    """Answers what is under ``/sandbox`` and passes on everything else."""

    def __init__(
        self,
        app: ASGIApp,
        faults: Faults,
        *,
        authenticate: Callable[[Request], Awaitable[Any]],
        compact: Callable[[], None],
    ) -> None:
        self._app = app
        self._faults = faults
        self._authenticate = authenticate
        self._compact = compact
        self._control = Starlette(
            routes=[
                Route("/sandbox/faults", self._checked(self._all), methods=["GET"]),
                Route("/sandbox/faults", self._checked(self._add), methods=["POST"]),
                Route("/sandbox/faults", self._checked(self._clear), methods=["DELETE"]),
                Route("/sandbox/faults/{id:int}", self._checked(self._remove), methods=["DELETE"]),
                Route("/sandbox/silence", self._checked(self._silence), methods=["POST", "DELETE"]),
                Route("/sandbox/compact", self._checked(self._forget), methods=["POST"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"].startswith(_PREFIX)
        await (self._control if ours else self._app)(scope, receive, send)

    def _checked(
        self, endpoint: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def checked(request: Request) -> Response:
            try:
                await self._authenticate(request)
                return await endpoint(request)
            except AppError as error:
                faults = [f"{one.path}: {one.message}" for one in getattr(error, "causes", ())]
                answer = {"error": error.message, "causes": faults}
                return JSONResponse(answer, status_code=error.status)

        return checked

    async def _all(self, _: Request) -> Response:
        return JSONResponse({"faults": self._faults.listing(), "silent": self._faults.silent})

    async def _add(self, request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError as error:
            raise BadRequest(f"the body is not JSON: {error}") from error
        return JSONResponse({"id": self._faults.add(read_fault(body))}, status_code=201)

    async def _remove(self, request: Request) -> Response:
        number = request.path_params["id"]
        if not self._faults.remove(number):
            raise NotFound(f"there is no fault {number}")
        return Response(status_code=204)

    async def _clear(self, _: Request) -> Response:
        self._faults.clear()
        return Response(status_code=204)

    async def _silence(self, request: Request) -> Response:
        if request.method == "POST":
            self._faults.stop_answering()
        else:
            self._faults.answer_again()
        return Response(status_code=204)

    async def _forget(self, _: Request) -> Response:
        self._compact()
        return Response(status_code=204)

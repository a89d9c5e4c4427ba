"""The routes of a Kubernetes API server, ready to be served or mounted into a larger application.

`build_app` is the whole server; `routes` are its parts for an application that has more to offer on the same port. An
application without core kinds leaves ``/api/v1`` to others, but for the events that ``kubectl describe`` asks for.
"""

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from app.apiserver.accept import wish
from app.apiserver.context import Server
from app.apiserver.discovery import Discovery
from app.apiserver.encoding import JSON, json_response
from app.apiserver.errors import method_not_allowed
from app.apiserver.guard import Call, Guarded, authorize_path
from app.apiserver.health import Health
from app.apiserver.openapi import OpenApi, empty_v2
from app.apiserver.paths import unknown_path
from app.apiserver.resources import serve_resource
from app.apiserver.reviews import review_access, review_self

Answer = Callable[[Call], Response]

_AGGREGATED = ("APIGroupDiscoveryList",)


def build_app(server: Server) -> Starlette:
    app = Starlette(routes=[*routes(server), Route("/{rest:path}", Guarded(server, _nowhere))])
    app.router.redirect_slashes = False
    return app


def routes(server: Server) -> list[BaseRoute]:
    """Most asked for first: routes are tried in order."""
    return [*_reviews(server), *_resources(server), *_health(server), *_information(server)]


async def _nowhere(call: Call) -> ASGIApp:  # noqa: ARG001 (the shape of a handler)
    raise unknown_path()


def _page(server: Server, answer: Answer) -> Guarded:
    """Something to be read that is no object."""

    async def handler(call: Call) -> ASGIApp:
        if call.request.method != "GET":
            raise method_not_allowed(["GET"])
        await authorize_path(server, call)
        return answer(call)

    return Guarded(server, handler)


def _health(server: Server) -> list[BaseRoute]:
    return [
        Route("/healthz", Health()),
        Route("/livez", Health()),
        Route("/readyz", Health(server)),
    ]


def _information(server: Server) -> list[BaseRoute]:
    pages: list[BaseRoute] = []
    for path, answer in {**_discovery(server), **_descriptions(server)}.items():
        page = _page(server, answer)
        pages.append(Route(path, page))
        if not path.endswith(":path}"):
            pages.append(Route(f"{path}/", page))
    return pages


def _discovery(server: Server) -> dict[str, Answer]:
    discovery = Discovery(server.registry, advertise_watch=server.advertise_watch)

    def core(call: Call) -> Response:
        wished = wish(call.request.headers.get("accept"), _AGGREGATED)
        return json_response(discovery.core(wished), media=wished.media)

    def groups(call: Call) -> Response:
        wished = wish(call.request.headers.get("accept"), _AGGREGATED)
        return json_response(discovery.groups(wished), media=wished.media)

    def group(call: Call) -> Response:
        return json_response(discovery.group(call.request.path_params["group"]))

    def resources(call: Call) -> Response:
        params = call.request.path_params
        return json_response(discovery.resources(params.get("group", ""), params["version"]))

    return {
        "/api": core,
        "/apis": groups,
        "/apis/{group}": group,
        "/apis/{group}/{version}": resources,
        "/api/{version}": resources,
    }


def _descriptions(server: Server) -> dict[str, Answer]:
    openapi = OpenApi(server.registry)
    major, minor = server.git_version.lstrip("v").split(".")[:2]
    version = {
        "major": major,
        "minor": minor,
        "gitVersion": server.git_version,
        "platform": "linux/amd64",
    }
    return {
        "/version": lambda _: json_response(version),
        "/openapi/v2": _v2,
        "/openapi/v3": lambda _: json_response(openapi.index()),
        "/openapi/v3/{path:path}": lambda call: _document(openapi, call),
    }


def _v2(call: Call) -> Response:
    document, media = empty_v2(call.request.headers.get("accept", ""))
    return Response(document, media_type=media)


def _document(openapi: OpenApi, call: Call) -> Response:
    document, digest = openapi.document(call.request.path_params["path"])
    headers = {"ETag": f'"{digest}"'}
    if call.request.query_params.get("hash") == digest:
        headers["Cache-Control"] = "public, immutable"
    if call.request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(document, media_type=JSON, headers=headers)


def _reviews(server: Server) -> list[BaseRoute]:
    def guarded(review: Callable[[Server, Call], Any]) -> Guarded:
        async def handler(call: Call) -> ASGIApp:
            answer: Response = await review(server, call)
            return answer

        return Guarded(server, handler)

    return [
        Route("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", guarded(review_access)),
        Route("/apis/authentication.k8s.io/v1/selfsubjectreviews", guarded(review_self)),
    ]


def _resources(server: Server) -> list[BaseRoute]:
    async def handler(call: Call) -> ASGIApp:
        return await serve_resource(server, call)

    endpoint = Guarded(server, handler)
    found: list[BaseRoute] = [Route("/apis/{group}/{version}/{rest:path}", endpoint)]
    if server.registry.find("", "v1", "events") is None:
        found += _no_events(server)
    if "" in server.registry.groups:
        found.append(Route("/api/{version}/{rest:path}", endpoint))
    return found


def _no_events(server: Server) -> list[BaseRoute]:
    """Kubectl looks for events whatever discovery says; without such a kind there are none."""
    empty = {
        "kind": "EventList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "0"},
        "items": [],
    }

    def answer(call: Call) -> Response:
        if call.request.query_params.get("watch") in ("true", "1"):
            raise unknown_path()
        return json_response(empty)

    page = _page(server, answer)
    return [Route("/api/v1/events", page), Route("/api/v1/namespaces/{namespace}/events", page)]

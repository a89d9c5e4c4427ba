"""The webhooks over HTTP: two paths, stateless, so any replica may answer.

The caller is the API server; nobody is authenticated, because an answer gives nothing away and changes nothing.
"""

from collections.abc import Callable

import orjson
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from app.apiserver.bodies import parse_json, read_body
from app.core.manifests import Manifest
from app.errors import AppError, BadRequest
from app.jobs.adapter import JobAdapter
from app.jobs.registry import ADAPTERS
from app.webhooks import jobs, review

log = structlog.get_logger("webhooks")

HasQueue = Callable[[str, str], bool]
"""Is there a LocalQueue of this namespace and name?"""


def routes(has_queue: HasQueue) -> list[BaseRoute]:
    def mutate(asked: review.Review) -> Manifest:
        default_queue = has_queue(asked.namespace, jobs.DEFAULT_QUEUE)
        return review.allow(
            asked, jobs.defaults(asked, _adapter(asked), default_queue=default_queue)
        )

    def validate(asked: review.Review) -> Manifest:
        found = jobs.faults(asked, _adapter(asked))
        return review.deny(asked, found) if found else review.allow(asked)

    return [
        Route("/webhooks/mutate", _endpoint(mutate), methods=["POST"]),
        Route("/webhooks/validate", _endpoint(validate), methods=["POST"]),
    ]


def _endpoint(
    answer: Callable[[review.Review], Manifest],
) -> Callable[[Request], "object"]:
    async def endpoint(request: Request) -> Response:
        try:
            body = parse_json(await read_body(request)).value
            if not isinstance(body, dict):
                raise BadRequest("expected an AdmissionReview")
            return _json(answer(review.read(body)), 200)
        except AppError as error:
            log.warning("review.refused", error=error.message)
            return _json({"message": error.message}, error.status)

    return endpoint


def _adapter(asked: review.Review) -> JobAdapter:
    for adapter in ADAPTERS:
        if (adapter.kind.group, adapter.kind.kind) == (asked.group, asked.kind):
            return adapter
    raise BadRequest(f"no jobs of kind {asked.kind} in group {asked.group!r} are managed here")


def _json(content: Manifest, status: int) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")

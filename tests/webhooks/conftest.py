"""The webhooks by themselves, called through ASGI; one namespace has a default queue."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from app.core.manifests import Manifest
from app.webhooks.application import routes

DEFAULTED = "team-with-default"

Call = Callable[[str, Manifest], Awaitable[Manifest]]


@pytest.fixture(scope="session")
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    app = Starlette(
        routes=routes(lambda namespace, name: (namespace, name) == (DEFAULTED, "default"))
    )
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://sluice") as client:
        yield client


@pytest.fixture
def call(http: httpx2.AsyncClient) -> Call:
    async def called(hook: str, body: Any) -> Manifest:
        answer = await http.post(f"/webhooks/{hook}", json=body)
        assert answer.status_code == 200, answer.text
        told: Manifest = answer.json()
        assert (told["apiVersion"], told["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert told["response"]["uid"] == body["request"]["uid"]
        return told

    return called

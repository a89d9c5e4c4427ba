"""An admission webhook server over HTTPS whose answers a test decides."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from app import clock
from app.sandbox.certificates import ServerIdentity, new_identity

Respond = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class Hooks:
    """What was asked, in order, and how to answer on each path."""

    identity: ServerIdentity
    url: str = ""
    answers: dict[str, Respond] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    delay_s: float = 0.0

    def configuration(self, which: str, name: str, path: str, **changes: Any) -> dict[str, Any]:
        hook = {
            "name": f"{name}.sluice.dev",
            "clientConfig": {"url": self.url + path, "caBundle": self.bundle},
            "rules": [
                {
                    "operations": ["CREATE", "UPDATE"],
                    "apiGroups": ["batch"],
                    "apiVersions": ["v1"],
                    "resources": ["jobs"],
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **changes,
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{which}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [hook],
        }

    @property
    def bundle(self) -> str:
        return base64.b64encode(self.identity.authority).decode()

    async def serve(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.asked.append(review["request"])
        await asyncio.sleep(self.delay_s)
        answer = self.answers[request.path](review["request"])
        response = {"uid": review["request"]["uid"], **answer}
        return web.json_response(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        )


def allow(_: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": True}


def patching(*operations: dict[str, Any]) -> Respond:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def denying(**status: Any) -> Respond:
    return lambda _: {"allowed": False, "status": status}


@asynccontextmanager
async def hooks_on_loopback() -> AsyncIterator[Hooks]:
    hooks = Hooks(new_identity(["127.0.0.1"], clock.now()))
    application = web.Application()
    application.router.add_post("/{path:.*}", hooks.serve)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=hooks.identity.context())
    await site.start()
    port = runner.addresses[0][1]
    hooks.url = f"https://127.0.0.1:{port}"
    try:
        yield hooks
    finally:
        await runner.cleanup()

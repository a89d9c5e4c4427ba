"""Is an admission webhook asked when a Job is created, and is its patch in what is stored?"""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from app.kube import errors
from app.kube.client import KubeClient
from app.kube.resources import JOBS, Resource
from tests.cluster.certs import Authority
from tests.kube.contract.cluster import eventually, fresh, job

CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", namespaced=False
)


class Webhook:
    """Suspends and marks every Job, or refuses it if it is named so."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        review = await request.json()
        asked = review["request"]
        self.requests.append(asked)
        answer: dict[str, Any] = {"uid": asked["uid"], "allowed": asked["name"] != "refused"}
        if answer["allowed"]:
            patch = [{"op": "add", "path": "/spec/suspend", "value": True}]
            answer["patchType"] = "JSONPatch"
            answer["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        else:
            answer["status"] = {"message": "this name is refused", "code": 403}
        body = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}
        return web.json_response(body)


@pytest_asyncio.fixture
async def webhook(client: KubeClient, namespace: str, tmp_path: Path) -> AsyncIterator[Webhook]:
    authority = await asyncio.to_thread(Authority, tmp_path, "webhook-ca")
    pair = authority.issue_server("webhook")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    webhook = Webhook()
    application = web.Application()
    application.router.add_post("/mutate", webhook.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.05, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/mutate"
    name = fresh("contract")
    await client.create(CONFIGURATIONS, None, configuration(name, namespace, url, bundle))
    try:
        await in_effect(client, namespace, webhook)
        yield webhook
    finally:
        await client.delete(CONFIGURATIONS, None, name)
        await runner.cleanup()


def configuration(name: str, namespace: str, url: str, bundle: str) -> dict[str, Any]:
    hook = {
        "name": "jobs.sluice.dev",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [
            {
                "apiGroups": ["batch"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["jobs"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }


async def in_effect(client: KubeClient, namespace: str, webhook: Webhook) -> None:
    """A real apiserver learns of a configuration by a watch of its own, a moment later."""

    async def asked() -> bool:
        await client.create(JOBS, namespace, job("probe"), dry_run=True)
        return bool(webhook.requests)

    await eventually(asked)
    webhook.requests.clear()


async def test_the_patch_is_in_what_is_stored(
    client: KubeClient, namespace: str, webhook: Webhook
) -> None:
    manifest = job()
    manifest["spec"]["suspend"] = False
    created = await client.create(JOBS, namespace, manifest)
    assert created["spec"]["suspend"] is True
    (asked,) = webhook.requests
    assert (asked["operation"], asked["namespace"], asked["name"]) == ("CREATE", namespace, "train")
    assert asked["dryRun"] is False
    assert asked["object"]["spec"]["suspend"] is False
    assert asked["object"]["kind"] == "Job"


async def test_a_dry_run_is_asked_about_as_such(
    client: KubeClient, namespace: str, webhook: Webhook
) -> None:
    await client.create(JOBS, namespace, job(), dry_run=True)
    assert [asked["dryRun"] for asked in webhook.requests] == [True]


async def test_a_refusal_reaches_the_client(
    client: KubeClient, namespace: str, webhook: Webhook
) -> None:
    with pytest.raises(errors.KubeForbidden, match="this name is refused"):
        await client.create(JOBS, namespace, job("refused"))
    with pytest.raises(errors.KubeNotFound):
        await client.get(JOBS, namespace, "refused")


async def test_an_update_is_not_asked_about(
    client: KubeClient, namespace: str, webhook: Webhook
) -> None:
    await client.create(JOBS, namespace, job())
    webhook.requests.clear()
    await client.patch(JOBS, namespace, "train", {"metadata": {"labels": {"a": "b"}}})
    assert webhook.requests == []

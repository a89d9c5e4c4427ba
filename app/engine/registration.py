"""Tells the cluster where our webhooks are.

Only one entry fails closed: the one that suspends a job that names a queue as it is created, since one that slipped
through would run unpaid for a moment. Jobs that name none are only looked at for a namespace's default queue, and what
slips past validation is repaired later, so those pass when we are away. kube-system and our own
namespace are never touched, or we could not start again. Written with server-side apply, so that a person's additions
(a narrower selector, say) stay.
"""

import base64
from dataclasses import dataclass
from typing import Any

from app.core.manifests import Manifest
from app.jobs.identity import JobKind
from app.jobs.labels import QUEUE_NAME
from app.kube.client import KubeClient
from app.kube.resources import Resource

NAME = "sluice"
TIMEOUT_S = 5

_QUEUE_OF = (
    "has({0}.metadata.labels) && '{1}' in {0}.metadata.labels ? {0}.metadata.labels['{1}'] : ''"
)
"""In CEL."""
QUEUE_CHANGES = {
    "name": "queue-is-new",
    "expression": "request.operation != 'UPDATE' || "
    f"({_QUEUE_OF.format('object', QUEUE_NAME)}) != ({_QUEUE_OF.format('oldObject', QUEUE_NAME)})",
}
"""Of all updates only those can be refused that name another queue: the rest, our own starts too, need no call."""

MUTATING = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the API server finds the webhooks: a `url`, or a Service named ``sluice`` in our namespace."""

    ca: bytes
    namespace: str
    url: str | None = None

    def client_config(self, path: str) -> Manifest:
        bundle = base64.b64encode(self.ca).decode()
        if self.url is not None:
            return {"caBundle": bundle, "url": self.url.rstrip("/") + path}
        service = {"namespace": self.namespace, "name": "sluice", "path": path, "port": 443}
        return {"caBundle": bundle, "service": service}


async def register(client: KubeClient, endpoint: Endpoint, kinds: list[JobKind]) -> None:
    for resource, manifest in configurations(endpoint, kinds):
        await client.apply(resource, None, manifest, force=True)


async def unregister(client: KubeClient) -> None:
    for resource in (MUTATING, VALIDATING):
        await client.delete(resource, None, NAME)


def configurations(endpoint: Endpoint, kinds: list[JobKind]) -> list[tuple[Resource, Manifest]]:
    queued = {"matchExpressions": [{"key": QUEUE_NAME, "operator": "Exists"}]}
    unqueued = {"matchExpressions": [{"key": QUEUE_NAME, "operator": "DoesNotExist"}]}
    mutate = endpoint.client_config("/webhooks/mutate")
    validate = endpoint.client_config("/webhooks/validate")
    shared = _shared(endpoint.namespace)
    creating = [_rule(kind, "CREATE") for kind in kinds]
    changing = [_rule(kind, "CREATE", "UPDATE") for kind in kinds]
    mutating = [
        _webhook("queued.jobs.sluice.dev", mutate, "Fail", creating, queued) | shared,
        _webhook("defaulted.jobs.sluice.dev", mutate, "Ignore", creating, unqueued) | shared,
    ]
    validating = [
        _webhook("jobs.sluice.dev", validate, "Ignore", changing, queued)
        | shared
        | {"matchConditions": [QUEUE_CHANGES]}
    ]
    return [
        (MUTATING, _configuration("MutatingWebhookConfiguration", mutating)),
        (VALIDATING, _configuration("ValidatingWebhookConfiguration", validating)),
    ]


def _shared(namespace: str) -> Manifest:
    outside = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": sorted({"kube-system", namespace}),
    }
    return {"namespaceSelector": {"matchExpressions": [outside]}}


def _webhook(
    name: str, client: Manifest, policy: str, rules: list[Manifest], objects: Manifest
) -> Manifest:
    return {
        "name": name,
        "clientConfig": client,
        "rules": rules,
        "objectSelector": objects,
        "failurePolicy": policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "admissionReviewVersions": ["v1"],
    }


def _rule(kind: JobKind, *operations: str) -> Manifest:
    return {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "resources": [kind.plural],
        "operations": list(operations),
        "scope": "Namespaced",
    }


def _configuration(kind: str, webhooks: list[Manifest]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": NAME},
        "webhooks": webhooks,
    }

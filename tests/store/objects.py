"""Manifests as the store gets them: small, with uids that sort by number."""

from typing import Any

from app.core.manifests import Manifest
from app.store.kinds import KINDS
from app.store.session import Actor

ADMIN = Actor("user", "admin@example.com")
ENGINE = Actor("system", "engine")
CREATED = "2026-01-02T03:04:05Z"


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def manifest(
    kind: str, name: str, number: int, *, namespace: str | None = None, **body: Any
) -> Manifest:
    metadata: dict[str, Any] = {"name": name, "uid": uid(number), "creationTimestamp": CREATED}
    if namespace is not None:
        metadata["namespace"] = namespace
    if kind != "Namespace":
        metadata["generation"] = 1
    return {"apiVersion": KINDS[kind].api_version, "kind": kind, "metadata": metadata, **body}


def workload(name: str, number: int, *, namespace: str = "team-a", **spec: Any) -> Manifest:
    return manifest(
        "Workload",
        name,
        number,
        namespace=namespace,
        spec={"queueName": "main", "priority": 0, "active": True} | spec,
    )


def cluster_queue(name: str, number: int, *, cohort: str | None = None, cpu: int = 10) -> Manifest:
    spec: dict[str, Any] = {"quota": cpu}
    if cohort is not None:
        spec["cohortName"] = cohort
    return manifest("ClusterQueue", name, number, spec=spec)


def cohort(name: str, number: int, *, parent: str | None = None) -> Manifest:
    return manifest("Cohort", name, number, spec={} if parent is None else {"parentName": parent})


def with_status(of: Manifest, **status: Any) -> Manifest:
    return {**of, "status": (of.get("status") or {}) | status}


def with_spec(of: Manifest, **spec: Any) -> Manifest:
    return {**of, "spec": (of.get("spec") or {}) | spec}

"""A cluster as the contract suite sees it: how to reach it, and the few things no client can do to it."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from app.kube.client import KubeClient
from app.kube.config import ClusterConfig
from app.kube.kubeconfig import load
from app.kube.resources import JOBS
from app.sandbox.cluster import Sandbox
from app.sandbox.settings import SandboxSettings
from tests.cluster.controlplane import ControlPlane

Manifest = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    name: str
    config: ClusterConfig
    forget_the_past: Callable[[], Awaitable[None]]
    """After this, a watch from version 1 is too old."""


@asynccontextmanager
async def sandbox() -> AsyncIterator[Cluster]:
    async with Sandbox(SandboxSettings()) as started:

        async def compact() -> None:
            started.compact()

        yield Cluster(name="sandbox", config=started.client_config(), forget_the_past=compact)


@asynccontextmanager
async def real() -> AsyncIterator[Cluster]:
    plane = ControlPlane()
    await asyncio.to_thread(plane.start)
    try:

        async def restart() -> None:
            """A new watch cache begins at the present."""
            await asyncio.to_thread(plane.restart_apiserver)

        yield Cluster(name="real", config=load(plane.kubeconfig), forget_the_past=restart)
        plane.check()
    finally:
        await asyncio.to_thread(plane.stop)


CLUSTERS = {"sandbox": sandbox, "real": real}


def fresh(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def job(name: str = "train", **metadata: Any) -> Manifest:
    container = {
        "name": "main",
        "image": "registry.invalid/nothing",
        "resources": {"requests": {"cpu": "100m"}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {
            "suspend": True,
            "parallelism": 2,
            "completions": 2,
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": {"app": "train"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [container],
                    "nodeSelector": {"mine": "yes"},
                    "tolerations": [{"key": "mine", "operator": "Exists"}],
                },
            },
        },
    }


async def eventually(
    question: Callable[[], Awaitable[Any]], *, within_s: float = 30.0, every_s: float = 0.05
) -> Any:
    """The first answer that is true; fails with the last one otherwise."""
    answer: Any = None
    try:
        async with asyncio.timeout(within_s):
            while not (answer := await question()):  # noqa: ASYNC110  (nobody tells us)
                await asyncio.sleep(every_s)
    except TimeoutError as error:
        raise AssertionError(f"never became true; the last answer was {answer!r}") from error
    return answer


async def suspended(client: KubeClient, namespace: str, name: str = "train") -> Manifest:
    """The Job once its controller has acknowledged the suspension, after which nobody writes to it but us."""

    async def acknowledged() -> Manifest | None:
        found = await client.get(JOBS, namespace, name)
        kinds = [condition["type"] for condition in found["status"].get("conditions", ())]
        return found if "Suspended" in kinds else None

    manifest: Manifest = await eventually(acknowledged)
    return manifest

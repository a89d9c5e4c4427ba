"""A fresh cluster for each test (it costs a few milliseconds), a client and a kubectl for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.sandbox.cluster import Sandbox
from app.sandbox.nodes.make import NodeShape
from app.sandbox.settings import SandboxSettings
from tests.sandbox.client import Client, Kubectl, client_of

SPEED = 20.0


def settings(**changes: object) -> SandboxSettings:
    """Twenty simulated seconds a second, two nodes of 8 cpu and 4 GPUs."""
    shape = NodeShape(count=2, capacity={"cpu": "8", "nvidia.com/gpu": "4"})
    defaults: dict[str, object] = {"speed": SPEED, "nodes": (shape,), "job_backoff_s": 0.2}
    return SandboxSettings(**{**defaults, **changes})  # type: ignore[arg-type]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(settings()) as started:
        yield started


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[Client]:
    async with client_of(sandbox) as opened:
        yield opened


@pytest.fixture
def kubectl(sandbox: Sandbox, tmp_path: Path) -> Kubectl:
    path = tmp_path / "kubeconfig"
    sandbox.write_kubeconfig(path)
    return Kubectl(path)

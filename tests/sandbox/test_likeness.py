"""Does the sandbox answer as a real control plane does, word for word?

The same conversation is had with both, and what they said is compared. `KNOWN` lists where they differ on purpose;
whatever else differs is a fault of the sandbox.
"""

import asyncio
import base64
import re
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from app.sandbox.cluster import Sandbox
from app.sandbox.nodes.make import NodeShape
from app.sandbox.settings import SandboxSettings
from tests.cluster.controlplane import ControlPlane
from tests.cluster.nodes import create_nodes, node
from tests.sandbox.client import Client, client_of
from tests.sandbox.conversation import Record, converse

# The first run compiles the control plane.
pytestmark = pytest.mark.timeout(1800)

KNOWN = (
    # Service accounts and networks do not exist here.
    r"\.(volumes|volumeMounts)\b",
    r"\.status\.(hostIPs?|podIPs?)\b",
    # The kubelet of the real test clusters notes when a pod will end; ours leaves out what is empty.
    r"sluice\.dev/Ends",
    r"\.lastState$",
    # Items of built-in lists do not repeat their kind, ours do.
    r"\.items\[\d+\]\.(apiVersion|kind)$",
    # The real scheduler spreads pods, and says that preemption would not help.
    r"\.spec\.nodeName$",
    r"^a pod is stuck\.body\.status\.conditions\[PodScheduled\]\.(message|observedGeneration)$",
    # The message repeats the whole template as Go prints its internal type.
    r"^refused: (template|image)\.body\.(message|details\.causes\[0\]\.message)$",
    # What is told in the message is not told once more as a cause.
    r"^refused: (webhook|late)\.body\.details(\.causes)?$",
    # Namespaces have no generation.
    r"^a namespace is (made|deleted)\.body\.metadata\.generation$",
)


@asynccontextmanager
async def real() -> AsyncIterator[Client]:
    plane = ControlPlane()
    await asyncio.to_thread(plane.start)
    try:
        nodes = [node("node-000"), node("node-001")]
        await asyncio.to_thread(create_nodes, plane.admin, nodes)
        document = yaml.safe_load(plane.kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        tls = ssl.create_default_context(cadata=_material(cluster, "certificate-authority"))
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(_material(user, "client-certificate") + _material(user, "client-key"))
            file.flush()
            tls.load_cert_chain(file.name)
        async with aiohttp.ClientSession() as session:
            yield Client(cluster["server"], session, tls)
    finally:
        await asyncio.to_thread(plane.stop)


def _material(holder: dict[str, str], field: str) -> str:
    if f"{field}-data" in holder:
        return base64.b64decode(holder[f"{field}-data"]).decode()
    return Path(holder[field]).read_text()


@asynccontextmanager
async def ours() -> AsyncIterator[Client]:
    shape = NodeShape(count=2, capacity={"cpu": "32", "memory": "256Gi"})
    async with Sandbox(SandboxSettings(nodes=(shape,))) as sandbox, client_of(sandbox) as client:
        yield client


async def test_it_answers_like_a_real_control_plane() -> None:
    said: list[Record] = []
    for cluster in (ours, real):
        async with cluster() as client:
            said.append(await converse(client))
    mine, theirs = said
    assert list(mine) == list(theirs)
    different = [
        f"{path}: {left!r} instead of {right!r}"
        for name in mine
        for path, left, right in differences(name, mine[name], theirs[name])
        if not any(re.search(pattern, path) for pattern in KNOWN)
    ]
    assert not different, "\n".join(different)


def differences(path: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield every place where two answers differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            yield from differences(f"{path}.{key}", left.get(key), right.get(key))
    elif isinstance(left, list) and isinstance(right, list):
        names = [_item_name(one, index) for index, one in enumerate(left + right[len(left) :])]
        for index, name in enumerate(names):
            pair = [side[index] if index < len(side) else None for side in (left, right)]
            yield from differences(f"{path}[{name}]", *pair)
    elif left != right:
        yield path, left, right


def _item_name(item: Any, index: int) -> str:
    return str(item["type"]) if isinstance(item, dict) and "type" in item else str(index)

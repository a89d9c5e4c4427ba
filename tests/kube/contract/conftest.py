"""Every test in this folder runs twice: against the sandbox and against a real control plane.

Both clusters serve the whole session; each test has a namespace of its own. Whatever passes on one and not on the other
is a fault of the sandbox, or of what we believe about Kubernetes.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.kube.client import KubeClient
from app.kube.resources import NAMESPACES
from tests.kube.contract.cluster import CLUSTERS, Cluster, fresh


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first run compiles a control plane, which takes some ten minutes."""
    for item in items:
        if "contract" in item.path.parts:
            item.add_marker(pytest.mark.timeout(1800))


@pytest_asyncio.fixture(scope="session", params=sorted(CLUSTERS))
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    async with CLUSTERS[request.param]() as started:
        yield started


@pytest_asyncio.fixture(scope="session")
async def client(cluster: Cluster) -> AsyncIterator[KubeClient]:
    async with KubeClient(cluster.config) as opened:
        yield opened


@pytest_asyncio.fixture
async def namespace(client: KubeClient) -> str:
    name = fresh("contract")
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(NAMESPACES, None, manifest)
    return name

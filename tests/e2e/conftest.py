"""The whole thing: a real cluster, a real Postgres, and `sluice serve` in processes of its own.

One installation serves the session; tests that break something bring it back, and the next test would not start before
it is. Each test has a namespace and queues of its own, and its jobs are removed afterwards. Whatever a test does to the
service, a traceback in its log is a failure.
"""

import re
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from app.store import migrate
from tests.cluster.controlplane import ControlPlane
from tests.cluster.nodes import create_nodes, node
from tests.e2e.front import Front, Kubectl
from tests.e2e.installation import Installation
from tests.e2e.records import Records
from tests.e2e.waiting import eventually
from tests.e2e.world import World
from tests.postgres import Postgres, start_postgres

MACHINE = {"cpu": "64", "memory": "256Gi", "pods": "110"}
RESERVED = {"key": "reserved", "value": "batch", "effect": "NoSchedule"}


@pytest.fixture(scope="session")
def cluster(control_plane: ControlPlane) -> ControlPlane:
    """With nodes of two pools, one of which takes only pods that tolerate its taint."""
    create_nodes(
        control_plane.admin,
        [
            node("red-0", MACHINE, {"pool": "red"}),
            node("red-1", MACHINE, {"pool": "red", "disk": "ssd"}),
            node("blue-0", MACHINE, {"pool": "blue"}, [RESERVED]),
            node("blue-1", MACHINE, {"pool": "blue", "disk": "ssd"}, [RESERVED]),
        ],
    )
    return control_plane


@pytest_asyncio.fixture(scope="session")
async def own_postgres() -> AsyncIterator[Postgres]:
    """A server that no other suite uses: tests take it away."""
    server = await start_postgres()
    try:
        await migrate.upgrade(server.admin_url)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def installation(
    cluster: ControlPlane, own_postgres: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("sluice")
    made = Installation(folder, cluster.kubeconfig, own_postgres.admin_url)
    made.launch()
    try:
        yield made
        made.stop()
    finally:
        if made.is_running():
            made.kill()


@pytest.fixture(scope="session")
def front(installation: Installation) -> Iterator[Front]:
    eventually((installation.folder / "serving.json").exists, 40)
    file = installation.folder / "sluice.kubeconfig"
    installation.run("kubeconfig", "-o", str(file))
    opened = Front(file)
    yield opened
    opened.close()


@pytest.fixture
def service(installation: Installation, front: Front) -> Iterator[Installation]:
    """Up and answering, before the test and after it; without a traceback in between."""
    if not installation.is_running():
        installation.launch()
    try:
        eventually(front.is_ready, 15)
    except AssertionError:  # a test before this one left it so, and has failed for it
        installation.kill()
        installation.launch()
        eventually(front.is_ready, 40)
    written = len(installation.log)
    yield installation
    news = installation.log[written:]
    assert "Traceback" not in news, news[news.index("Traceback") - 2000 :][:6000]


@pytest.fixture
def world(
    cluster: ControlPlane, service: Installation, front: Front, request: pytest.FixtureRequest
) -> Iterator[World]:
    word = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    name = f"{word[:30].strip('-')}-{uuid.uuid4().hex[:4]}"
    cluster.admin.create_namespace(name)
    kubectl = Kubectl(cluster.kubeconfig)
    yield World(name, cluster.admin, kubectl, front, Records(service.database_url))
    for kind in ("batch/v1/namespaces/{}/jobs", "v1/namespaces/{}/pods"):
        root = "apis" if kind.startswith("batch") else "api"
        cluster.admin.delete(f"/{root}/{kind.format(name)}", {"gracePeriodSeconds": 0})

"""One worker over one database for the tests that only look and edit; each has names of its own.

Tests about several workers, outages or numbers of connections start their own.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.api.running import Corner, Worker, make_token, working
from tests.apiserver.running import Kubectl, make_certificate
from tests.postgres import Postgres


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kubectl")


@pytest.fixture(scope="session")
async def worker(postgres: Postgres, certificate: Path) -> AsyncIterator[Worker]:
    name = await postgres.create("sluice_template")
    async with working(postgres.url(name), certificate) as started:
        for role in ("admin", "viewer"):
            text = await make_token(started.database, f"{role}-person", role)
            started.tokens[role] = text
        yield started
    await postgres.drop(name)


@pytest.fixture
def corner(worker: Worker, kubectl_home: Path) -> Corner:
    return Corner.of(worker, kubectl_home)


@pytest.fixture
def kubectl(corner: Corner) -> Kubectl:
    return corner.kubectl


@pytest.fixture
def viewer(corner: Corner) -> Kubectl:
    return corner.as_(corner.worker.tokens["viewer"])


@pytest.fixture
async def http(worker: Worker) -> AsyncIterator[httpx2.AsyncClient]:
    async with worker.client() as client:
        yield client

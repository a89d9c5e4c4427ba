"""One server for all tests of this package; each test works in a namespace of its own."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.apiserver.running import Kubectl, Running, make_certificate, running

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture(scope="session")
async def api(certificate: Path) -> AsyncIterator[Running]:
    async with running(certificate) as started:
        yield started


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kubectl")


@pytest.fixture
def namespace() -> str:
    return f"ns-{next(_numbers)}"


@pytest.fixture
def kubectl(api: Running, kubectl_home: Path, namespace: str) -> Kubectl:
    return Kubectl(api.url, kubectl_home, namespace)


@pytest.fixture
async def http(api: Running) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": "Bearer alice-token"}
    async with httpx2.AsyncClient(
        base_url=api.url, headers=headers, timeout=10, verify=False
    ) as client:
        yield client

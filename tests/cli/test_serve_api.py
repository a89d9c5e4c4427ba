"""`sluice serve --role api` as a process: started, found, used with kubectl, told to stop."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.apiserver.running import Kubectl
from tests.cli.running import Shell
from tests.unit.intake import samples

QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


@asynccontextmanager
async def serving(admin: Shell, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await admin.start("serve", "--role", "api", SLUICE_API_PORT=str(port))
    try:
        await ready(admin, port, process)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ready(admin: Shell, port: int, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(20):
        while process.returncode is None:
            try:
                async with trusting(admin, port) as client:
                    if (await client.get("/readyz")).status_code == 200:
                        return
            except (httpx2.TransportError, OSError):
                pass
            await asyncio.sleep(0.1)
    raise AssertionError(await process.communicate())


def trusting(admin: Shell, port: int, token: str = "") -> httpx2.AsyncClient:
    """A client that knows our certificate authority and no other."""
    context = ssl.create_default_context(cafile=admin.home / "data" / "certificates" / "ca.crt")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(
        base_url=f"https://127.0.0.1:{port}", verify=context, headers=headers, timeout=10
    )


async def test_served_found_used_and_stopped(admin: Shell, port: int, tmp_path: Path) -> None:
    async with serving(admin, port) as process:
        file = tmp_path / "sluice.kubeconfig"
        url = f"https://127.0.0.1:{port}"
        assert admin("kubeconfig", "--server", url, "-o", str(file)).code == 0
        kubectl = Kubectl("", tmp_path, "default", kubeconfig=file)
        made = await kubectl("create", "-f", "-", stdin=samples.cluster_queue())
        assert "clusterqueue.kueue.x-k8s.io/sample created" in made.out
        assert "sample" in (await kubectl("get", "cq")).out

        text = admin("token", "create", "eve").out.strip()
        async with trusting(admin, port, text) as client:
            assert (await client.get(QUEUES)).status_code == 200
            assert admin("token", "revoke", "eve").code == 0
            query = {"watch": "true", "timeoutSeconds": "60"}
            async with client.stream("GET", QUEUES, params=query) as watch:
                lines = watch.aiter_lines()
                assert "ADDED" in await anext(lines)
                async with asyncio.timeout(13):
                    while (await client.get(QUEUES)).status_code != 401:  # noqa: ASYNC110
                        await asyncio.sleep(0.5)
                process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(5):
                    assert [line async for line in lines] == [], "an open watch ends at once"
        out, err = await asyncio.wait_for(process.communicate(), 10)
        assert process.returncode == 0, err
        assert out == b""
        assert b"Traceback" not in err
        assert text.encode() not in err


async def test_a_port_that_is_taken(admin: Shell) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        told = await asyncio.to_thread(
            lambda: admin.run("serve", "--role", "api", SLUICE_API_PORT=str(port))
        )
    assert told.code == 2
    assert f"cannot listen on 127.0.0.1:{port}: " in told.err.splitlines()[-1]
    assert "Traceback" not in told.err


async def test_an_address_that_is_not_ours(admin: Shell) -> None:
    told = await asyncio.to_thread(
        lambda: admin.run("serve", "--role", "api", SLUICE_API_HOST="192.0.2.1")
    )
    assert told.code == 2
    assert "cannot listen on 192.0.2.1:8080: " in told.err.splitlines()[-1]
    assert os.linesep not in told.err.splitlines()[-1]

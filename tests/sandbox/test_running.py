"""Does a sandbox come and go quickly, and leave nothing behind?"""

import asyncio
import stat
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from app.kube.client import KubeClient
from app.kube.resources import NODES as NODE_RESOURCE
from app.sandbox.cluster import Sandbox, serve
from app.sandbox.settings import SandboxSettings, gpu_nodes
from tests.sandbox.client import JOBS, NODES, Client, client_of, is_true, job
from tests.sandbox.conftest import settings


async def test_it_closes_within_a_second_with_open_watches_and_a_hanging_request() -> None:
    loop = asyncio.get_running_loop()
    before = asyncio.all_tasks()
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(Sandbox(settings()))
        async with client_of(sandbox) as client, AsyncExitStack() as watches:
            streams = [
                await watches.enter_async_context(client.watching(path)) for path in (JOBS, NODES)
            ]
            await client.create(JOBS, job())
            sandbox.faults.stop_answering()
            hanging = asyncio.create_task(client.items(JOBS))
            await asyncio.sleep(0.05)
            start = loop.time()
            await stack.aclose()
            assert loop.time() - start < 1
            for stream in streams:
                async for _ in stream:
                    """What had been told before; then the stream ends."""
            await asyncio.gather(hanging, return_exceptions=True)
    assert asyncio.all_tasks() <= before, "no loop is left running"


async def test_two_clusters_live_side_by_side() -> None:
    async with (
        Sandbox(settings()) as one,
        Sandbox(settings()) as two,
        client_of(one) as first,
        client_of(two) as second,
    ):
        assert one.url != two.url
        await first.create(JOBS, job())
        assert await second.items(JOBS) == []


async def test_our_own_client_speaks_to_it(sandbox: Sandbox) -> None:
    async with KubeClient(sandbox.client_config()) as client:
        listed = await client.list(NODE_RESOURCE)
        assert len(listed.items) == 2


async def test_plain_http_is_served_when_asked_for() -> None:
    async with Sandbox(settings(tls=False)) as sandbox, client_of(sandbox) as client:
        assert sandbox.url.startswith("http://127.0.0.1:")
        assert len(await client.items(NODES)) == 2


async def test_serve_writes_a_private_kubeconfig_and_takes_it_away(tmp_path: Path) -> None:
    path = tmp_path / "sandbox.kubeconfig"
    task = asyncio.create_task(serve(SandboxSettings(nodes=gpu_nodes(4, 8)), path))
    while not path.exists() or not path.read_text():
        assert not task.done()
        await asyncio.sleep(0.01)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = yaml.safe_load(path.read_text())
    assert document["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not path.exists()


async def test_nobody_gets_in_without_the_token(sandbox: Sandbox, client: Client) -> None:
    sandbox.token = "changed"
    answer = await client.call("GET", NODES)
    assert (answer.status, answer.body["reason"]) == (401, "Unauthorized")


async def test_hundreds_of_jobs_run_through(client: Client, sandbox: Sandbox) -> None:
    """The figure itself is not asserted here: it is a shared machine."""
    await sandbox.add_nodes(10, capacity={"cpu": "64"})
    names = [f"j{number}" for number in range(200)]
    await asyncio.gather(
        *(client.create(JOBS, job(name, parallelism=2, completions=2)) for name in names)
    )
    await client.until(
        JOBS, lambda found: all(map(is_true("Complete"), found["items"])), timeout_s=30
    )
    assert len(await client.items(JOBS)) == 200

"""Postgres goes away and comes back: reads go on from memory, writes say why not, nobody has to restart anything."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import psutil
import pytest

from app.api.patience import Patience
from app.api.watch_cache import WatchCache
from app.errors import Unavailable
from app.store import migrate
from tests.api.running import BASE, Worker, make_token, until_ready, working
from tests.postgres import Postgres, start_postgres
from tests.unit.intake import samples

QUEUES = f"{BASE}/clusterqueues"


@pytest.fixture
async def mortal() -> AsyncIterator[Postgres]:
    """A server of the test's own, with settings under which a crash loses nothing."""
    server = await start_postgres({"synchronous_commit": "on", "fsync": "off"})
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
async def worker(mortal: Postgres, certificate: Path) -> AsyncIterator[Worker]:
    name = await mortal.create()
    await migrate.upgrade(mortal.url(name))
    async with working(mortal.url(name), certificate) as started:
        started.tokens["admin"] = await make_token(started.database, "admin-person", "admin")
        yield started


async def test_postgres_goes_and_comes_back(mortal: Postgres, worker: Worker) -> None:
    stranger = await worker.token("stranger")
    async with worker.client() as client, worker.client("") as anybody:
        made = await client.post(QUEUES, json=samples.cluster_queue())
        assert made.status_code == 201
        assert (await client.get(QUEUES)).status_code == 200
        query = {"watch": "true", "resourceVersion": made.json()["metadata"]["resourceVersion"]}
        async with client.stream("GET", QUEUES, params=query) as watch:
            mortal.crash()

            assert (await anybody.get("/livez")).status_code == 200
            assert (await anybody.get("/readyz")).status_code == 503
            assert "database" in (await anybody.get("/readyz")).text
            for ahead in (0, 30):
                worker.clock.pass_s(ahead)
                async with asyncio.timeout(5):
                    listed = await client.get(QUEUES)
                    one = await client.get(f"{QUEUES}/sample")
                assert [item["metadata"]["name"] for item in listed.json()["items"]] == ["sample"]
                assert one.json()["metadata"]["uid"] == made.json()["metadata"]["uid"]
                async with asyncio.timeout(5):
                    refused = await client.delete(f"{QUEUES}/sample")
                assert refused.status_code == 503, refused.text
                assert int(refused.headers["retry-after"]) >= 1
                status = refused.json()
                assert status["reason"] == "ServiceUnavailable"
                assert status["message"].startswith("Postgres does not answer")
                assert "127.0.0.1" not in status["message"] or "Connect call" in status["message"]
            headers = {"Authorization": f"Bearer {stranger}"}
            unknown = await anybody.get(QUEUES, headers=headers)
            assert unknown.status_code == 503, "whoever was not known cannot be asked about"
            worker.clock.pass_s(3600)
            assert (await client.get(QUEUES)).status_code == 503, "nobody is trusted for ever"

            await mortal.start()
            await until_ready(worker)
            async with asyncio.timeout(15):
                while (await client.delete(f"{QUEUES}/sample")).status_code != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                line = await anext(watch.aiter_lines())
        assert "deletionTimestamp" in line, "the watch went on through it all"
        found = (await client.get(f"{QUEUES}/sample")).json()
        assert found["metadata"]["deletionTimestamp"]


async def test_what_was_acknowledged_is_never_denied(mortal: Postgres, worker: Worker) -> None:
    """A write that the cache had no time to hear of: better no answer than one without it."""
    async with worker.client() as client:
        (await client.get(QUEUES)).raise_for_status()
        (await client.post(QUEUES, json=samples.cluster_queue())).raise_for_status()
        mortal.crash()
        answer = await client.get(f"{QUEUES}/sample")
        assert answer.status_code in (200, 503), answer.text
        await mortal.start()
        await until_ready(worker)
        async with asyncio.timeout(10):
            while (await client.get(f"{QUEUES}/sample")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def test_postgres_comes_back_from_an_older_copy(mortal: Postgres, worker: Worker) -> None:
    async with worker.client() as client:
        (await client.post(QUEUES, json=samples.cluster_queue())).raise_for_status()
        listed = (await client.get(QUEUES)).json()
        query = {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
        async with client.stream("GET", QUEUES, params=query) as watch:
            mortal.crash()
            await mortal.start()
            connection = await asyncpg.connect(worker.database.url)
            await connection.execute(
                "delete from changes; delete from cluster_queues; "
                "select setval('change_numbers', 2, false)"
            )
            await connection.close()
            async with asyncio.timeout(15):
                told = [line async for line in watch.aiter_lines()]
        assert '"code":410' in told[-1], "whoever watches must list again"
        await until_ready(worker)
        async with asyncio.timeout(10):
            while (await client.get(QUEUES)).json().get("items") != []:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        (await client.post(QUEUES, json=samples.cluster_queue())).raise_for_status()
        assert len((await client.get(QUEUES)).json()["items"]) == 1


async def test_the_cache_says_in_a_sentence_why_it_stopped(
    mortal: Postgres, worker: Worker
) -> None:
    cache = WatchCache(worker.database, Patience())
    running = asyncio.create_task(cache.run())
    await asyncio.wait_for(cache.loaded.wait(), 5)
    mortal.crash()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(running, 15)


async def test_a_worker_that_starts_without_postgres_waits_for_it(
    mortal: Postgres, worker: Worker, certificate: Path
) -> None:
    """Its cache is loaded as soon as Postgres answers."""
    async with worker.client() as client:
        (await client.post(QUEUES, json=samples.cluster_queue())).raise_for_status()
    url = worker.database.url
    async with working(url, certificate) as second:
        second.tokens["admin"] = worker.admin
        mortal.crash()
        async with second.client() as client:
            assert (await client.get("/readyz")).status_code == 503
            await mortal.start()
            await until_ready(second)
            listed = (await client.get(QUEUES)).json()
        assert len(listed["items"]) == 1


async def test_postgres_hangs(mortal: Postgres, worker: Worker) -> None:
    """A frozen server accepts connections and never answers."""
    async with worker.client() as client:
        (await client.post(QUEUES, json=samples.cluster_queue())).raise_for_status()
        assert len((await client.get(QUEUES)).json()["items"]) == 1
        with _frozen(mortal):
            worker.clock.pass_s(30)
            async with asyncio.timeout(12):
                answers = await asyncio.gather(*(client.get(QUEUES) for _ in range(20)))
            assert {answer.status_code for answer in answers} == {200}
            assert len(answers[0].json()["items"]) == 1
            async with asyncio.timeout(12):
                refused = await client.delete(f"{QUEUES}/sample")
            assert refused.status_code == 503, refused.text
        await until_ready(worker)
        found = (await client.get(f"{QUEUES}/sample")).json()
        assert "deletionTimestamp" not in found["metadata"]
        assert (await client.delete(f"{QUEUES}/sample")).status_code == 200


@contextmanager
def _frozen(server: Postgres) -> Iterator[None]:
    assert server.process is not None
    main = psutil.Process(server.process.pid)
    family = [main, *main.children(recursive=True)]
    for process in family:
        process.suspend()
    try:
        yield
    finally:
        for process in family:
            process.resume()

"""Several API workers over one database: everybody reads their own writes, and watches miss nothing."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from app import clock
from app.store import changes
from tests.api.running import BASE, TESTER, Worker, make_token, working
from tests.postgres import Postgres
from tests.unit.intake import samples

PLACE = f"{BASE}/namespaces/team-a/localqueues"
TRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TRUSTING.check_hostname, TRUSTING.verify_mode = False, ssl.CERT_NONE
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
async def workers(database_url: str, certificate: Path) -> AsyncIterator[list[Worker]]:
    async with AsyncExitStack() as stack:
        found = [
            await stack.enter_async_context(
                working(database_url, certificate, application_name=f"worker-{number}")
            )
            for number in range(2)
        ]
        text = await make_token(found[0].database, "admin-person", "admin")
        for worker in found:
            worker.tokens["admin"] = text
        yield found


def local_queue(name: str, step: int = 0) -> dict[str, Any]:
    manifest = samples.local_queue()
    manifest["metadata"] |= {"name": name, "labels": {"step": str(step)}}
    return manifest


async def events(client: httpx2.AsyncClient, since: str, path: str = PLACE) -> AsyncGenerator[Any]:
    """A watch, event by event, until the server ends it."""
    query = {"watch": "true", "resourceVersion": since, "timeoutSeconds": "20"}
    async with client.stream("GET", path, params=query) as stream:
        assert stream.status_code == 200
        async for line in stream.aiter_lines():
            yield orjson.loads(line)


async def version(client: httpx2.AsyncClient) -> str:
    listed = (await client.get(PLACE)).json()
    found: str = listed["metadata"]["resourceVersion"]
    return found


async def test_everybody_reads_what_was_written_anywhere(workers: list[Worker]) -> None:
    async with workers[0].client() as one, workers[1].client() as two:
        for number in range(25):
            writer, reader = (one, two) if number % 2 else (two, one)
            name = f"queue-{number}"
            (await writer.post(PLACE, json=local_queue(name))).raise_for_status()
            found = await reader.get(f"{PLACE}/{name}")
            assert found.status_code == 200, number
            listed = (await reader.get(PLACE)).json()
            assert len(listed["items"]) == number + 1
            numbers = [int(one["metadata"]["resourceVersion"]) for one in listed["items"]]
            assert max(numbers) <= int(listed["metadata"]["resourceVersion"])
        for number in range(0, 25, 5):
            (await one.delete(f"{PLACE}/queue-{number}")).raise_for_status()
            assert (await two.get(f"{PLACE}/queue-{number}")).status_code == 404


async def test_a_watch_sees_all_writes_of_all_workers_once_and_in_order(
    workers: list[Worker],
) -> None:
    writers, steps = 4, 12
    async with workers[0].client() as one, workers[1].client() as two:
        since = await version(one)

        async def write(number: int) -> None:
            for step in range(steps):
                client = one if (step + number) % 2 else two
                body = local_queue(f"queue-{number}", step)
                if step == 0:
                    answer = await client.post(PLACE, json=body)
                else:
                    patch = {"metadata": {"labels": {"step": str(step)}}}
                    url = f"{PLACE}/queue-{number}"
                    answer = await client.patch(url, json=patch, headers=MERGE)
                assert answer.is_success, answer.text

        async def watch(client: httpx2.AsyncClient) -> list[tuple[int, str, int]]:
            seen: list[tuple[int, str, int]] = []
            async with aclosing(events(client, since)) as told:
                async for event in told:
                    metadata = event["object"]["metadata"]
                    step = int(metadata["labels"]["step"])
                    seen.append((int(metadata["resourceVersion"]), metadata["name"], step))
                    assert event["type"] == ("MODIFIED" if step else "ADDED")
                    if len(seen) == writers * steps:
                        break
            return seen

        async with workers[0].client() as third, workers[1].client() as fourth:
            watching = [asyncio.create_task(watch(client)) for client in (third, fourth)]
            await asyncio.gather(*(write(number) for number in range(writers)))
            first, second = await asyncio.wait_for(asyncio.gather(*watching), 20)
    assert first == second
    assert [number for number, _, _ in first] == sorted({number for number, _, _ in first})
    for writer in range(writers):
        assert [step for _, name, step in first if name == f"queue-{writer}"] == list(range(steps))


async def test_a_watch_begins_where_another_worker_listed(workers: list[Worker]) -> None:
    async with workers[0].client() as one, workers[1].client() as two:
        made = (await one.post(PLACE, json=local_queue("a"))).json()
        told = events(two, made["metadata"]["resourceVersion"])
        async with aclosing(told):
            reading = asyncio.ensure_future(anext(told))
            (await one.delete(f"{PLACE}/a")).raise_for_status()
            event = await asyncio.wait_for(reading, 10)
    assert event["type"] == "DELETED"
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(
        made["metadata"]["resourceVersion"]
    )


async def test_what_is_no_longer_kept_is_gone(
    database_url: str, certificate: Path, workers: list[Worker]
) -> None:
    async with workers[0].client() as client:
        old = await version(client)
        for step in range(4):
            (await client.post(PLACE, json=local_queue(f"q{step}"))).raise_for_status()
        page = (await client.get(PLACE, params={"limit": 2})).json()["metadata"]["continue"]
    async with workers[0].database.write(TESTER) as tx:
        await changes.prune(tx, keep=0, older_than=clock.now())
    async with working(database_url, certificate) as late:
        late.tokens["admin"] = workers[0].admin
        async with late.client() as client:
            told = [event async for event in events(client, old)]
            assert [event["type"] for event in told] == ["ERROR"]
            assert (told[0]["object"]["code"], told[0]["object"]["reason"]) == (410, "Expired")
            assert (await client.get(PLACE)).json()["metadata"]["resourceVersion"] > old
            answer = await client.get(PLACE, params={"limit": 2, "continue": page})
            assert answer.status_code in (200, 410)


async def test_numbers_from_the_future(workers: list[Worker]) -> None:
    async with workers[0].client() as client:
        ahead = str(int(await version(client)) + 1000)
        answer = await client.get(PLACE, params={"resourceVersion": ahead})
        assert answer.status_code == 504
        assert "Too large resource version" in answer.json()["message"]


async def test_clients_that_vanish_leave_no_backend_behind(
    postgres: Postgres, workers: list[Worker], database_url: str
) -> None:
    name = database_url.rpartition("/")[2]

    async def backends() -> int:
        rows = await postgres.admin(
            "select count(*) from pg_stat_activity where datname = $1 and application_name = 'worker-0'",
            name,
        )
        return int(rows[0]["count"])

    async def look(path: str, seconds: float) -> None:
        """Ask, and hang up in the middle of the answer or before it."""
        _, writer = await _call(workers[0], path)
        await asyncio.sleep(seconds)
        writer.transport.abort()

    for _ in range(4):
        for path in (PLACE, f"{PLACE}?watch=true"):
            await asyncio.gather(*(look(path, 0.005 * number) for number in range(10)))
        async with workers[0].client() as client:
            (await client.get(PLACE)).raise_for_status()
    assert await backends() <= 4, "the pool's size; watches need no connection"
    async with asyncio.timeout(5), workers[0].client() as client:
        answers = await asyncio.gather(*(client.get(PLACE) for _ in range(30)))
    assert {answer.status_code for answer in answers} == {200}


async def _call(worker: Worker, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = worker.url.removeprefix("https://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=TRUSTING)
    lines = (f"GET {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {worker.admin}")
    writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    return reader, writer

"""How many events a second does a reflector take, and what does an event cost until it is a row?

A server in a process of its own sends watch events of Jobs, with managed fields, as fast as they are taken. `sink`
hands them to nobody: the cost of the watch itself. `intake` records them as the engine does, in a real and durable
Postgres: first as many new jobs, then one change of each (the controller's answer to the suspension).
"""

import asyncio
import copy
import multiprocessing
import random
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import orjson
import uvloop

from app import clock
from app.intake.jobs import JobIntake
from app.jobs.batch_job import BatchJobAdapter
from app.kube.client import KubeClient
from app.kube.codec import ManifestCodec
from app.kube.config import ClusterConfig
from app.kube.outbox import Batch, Sink
from app.kube.reflector import Reflector, Source
from app.kube.resources import Resource
from app.sandbox.postgres import EmbeddedPostgres
from app.store import lease as leases
from app.store import migrate
from app.store.session import Database
from tests.bench.report import Report
from tests.bench.wishes import Wishes
from tests.cluster.admin import Object
from tests.e2e.manifests import job

EVENTS = 50_000
ROWS = 10_000
JOBS = Resource("batch", "v1", "jobs")
QUEUES = 10


def sink(wishes: Wishes) -> Report:
    count = wishes.sized(EVENTS)
    report = Report("reflector/sink")
    with _served(_new(count)) as (url, size):
        seen = _run(_no_rows(url, count))
    _tell(report, seen, count)
    report.add("bytes an event", size / count)
    return report


def intake(wishes: Wishes) -> Report:
    count = wishes.sized(ROWS)
    jobs = _new(count)
    report = Report("reflector/intake")
    with _postgres() as database_url:
        for name, events in (("new", jobs), ("changed", [_answered(one) for one in jobs])):
            with _served(events) as (url, _):
                _tell(report, _run(_rows(url, count, database_url)), count, f"{name}: ")
    return report


@dataclass(frozen=True, slots=True)
class Seen:
    took_s: float
    cpu_s: float
    batches: int


def _tell(report: Report, seen: Seen, count: int, what: str = "") -> None:
    report.add(f"{what}events", count)
    report.add(f"{what}rate", count / seen.took_s, "events/s")
    report.add(f"{what}cpu", seen.cpu_s / count * 1e6, "µs/event", "of the reflector's process")
    report.add(f"{what}batches", seen.batches)


async def _no_rows(url: str, count: int) -> Seen:
    async def take(batch: Batch[Object]) -> None:
        pass

    return await _follow(url, count, take)


async def _rows(url: str, count: int, database_url: str) -> Seen:
    async with _intake(database_url) as into:

        async def take(batch: Batch[Object]) -> None:
            refused = await into.observe(batch.changed)
            assert not refused, refused[0].error

        return await _follow(url, count, take)


async def _follow(url: str, count: int, taken: Sink[Object]) -> Seen:
    """Until as many objects have come; each comes once."""
    done, came, batches = asyncio.Event(), 0, 0

    async def take(batch: Batch[Object]) -> None:
        nonlocal came, batches
        await taken(batch)
        came += len(batch.changed)
        batches += bool(batch.changed)
        if came >= count:
            done.set()

    async with KubeClient(ClusterConfig(server=url)) as client:
        source = Source(resource=JOBS, codec=ManifestCodec())
        reflector = Reflector(client, source, take, random=random.Random(1))
        began, cpu = time.monotonic(), time.process_time()
        following = asyncio.create_task(reflector.run())
        await done.wait()
        seen = Seen(time.monotonic() - began, time.process_time() - cpu, batches)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return seen


@asynccontextmanager
async def _intake(url: str) -> AsyncIterator[JobIntake]:
    database = await Database.open(url, application_name="sluice-bench")
    try:
        lease = await leases.take(database, "bench", ttl_s=600)
        assert lease is not None
        yield JobIntake(
            database=database,
            lease=lease,
            adapter=BatchJobAdapter(),
            clock=clock.now,
            new_uid=lambda: str(uuid.uuid4()),
            manages=lambda _namespace: True,
            priority_of=lambda _name: None,
        )
        await leases.release(database, lease)
    finally:
        await database.close()


@contextmanager
def _postgres() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        Path(folder).chmod(0o755)
        with EmbeddedPostgres(Path(folder) / "postgres") as server:
            asyncio.run(migrate.upgrade(server.url))
            yield server.url


# The jobs, as an API server shows them


def _new(count: int) -> list[Object]:
    return [_job(number) for number in range(count)]


def _job(number: int) -> Object:
    made = job(f"job-{number}", f"queue-{number % QUEUES}")
    made["metadata"] |= {
        "namespace": "bench",
        "uid": str(uuid.UUID(int=number + 1)),
        "resourceVersion": str(number + 10),
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [_managed(made)],
    }
    return made


def _managed(made: Object) -> Object:
    def fields(part: Any) -> Object:
        is_object = isinstance(part, dict)
        return {f"f:{name}": fields(value) for name, value in part.items()} if is_object else {}

    owner = {"manager": "kubectl", "operation": "Update", "apiVersion": "batch/v1"}
    return {**owner, "fieldsType": "FieldsV1", "fieldsV1": fields({"spec": made["spec"]})}


def _answered(made: Object) -> Object:
    """What the job controller writes when it has seen that a job is suspended."""
    changed = copy.deepcopy(made)
    changed["metadata"]["resourceVersion"] = str(int(made["metadata"]["resourceVersion"]) + 10**6)
    changed["status"] = {"conditions": [{"type": "Suspended", "status": "True"}], "ready": 0}
    return changed


# The server, in a process of its own so that its work is not counted


@contextmanager
def _served(events: Sequence[Object]) -> Iterator[tuple[str, int]]:
    """Its URL and the size of all events."""
    lines = [orjson.dumps({"type": "ADDED", "object": one}) + b"\n" for one in events]
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(lines, there), daemon=True
    )
    process.start()
    try:
        yield here.recv(), sum(map(len, lines))
    finally:
        process.terminate()
        process.join()


def _serve(lines: list[bytes], ready: Connection) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            is_watch = b"watch=true" in head.split(b"\r\n", 1)[0]
            await (_stream(writer, lines) if is_watch else _empty_list(writer))

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await server.serve_forever()

    asyncio.run(serve())


async def _empty_list(writer: asyncio.StreamWriter) -> None:
    body = (
        b'{"kind":"JobList","apiVersion":"batch/v1","metadata":{"resourceVersion":"1"},"items":[]}'
    )
    writer.write(_HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


async def _stream(writer: asyncio.StreamWriter, lines: Sequence[bytes]) -> None:
    writer.write(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for line in lines:
        writer.write(b"%x\r\n%b\r\n" % (len(line), line))
        await writer.drain()
    await asyncio.sleep(3600)


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _run(work: Coroutine[Any, Any, Seen]) -> Seen:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)

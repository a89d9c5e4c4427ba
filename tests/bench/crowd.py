"""Makes many Jobs as fast as the API server takes them, and notes when each was made, started and done.

The watch is one of our own, apart from the service's. A Job's birth is the moment the server's answer came, its start
the moment the watch showed it unsuspended, its end the moment it showed the condition Complete.
"""

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from app.kube import kubeconfig
from app.kube.client import KubeClient, Selection, WatchStart
from app.kube.config import Limits
from app.kube.lines import LineSplitter
from app.kube.resources import Resource
from tests.cluster.admin import Object

JOBS = Resource("batch", "v1", "jobs")
AT_ONCE = 24
UNLIMITED = Limits(qps=1e6, burst=1_000_000)


class _Meta(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct):
    suspend: bool = False


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Job(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_EVENTS = msgspec.json.Decoder(_Event)
_JOB = msgspec.json.Decoder(_Job)


@dataclass(slots=True)
class Crowd:
    """Times by the name of a job, in seconds of one monotonic clock."""

    client: KubeClient
    namespace: str
    born: dict[str, float] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(self, jobs: Sequence[Object]) -> None:
        waiting = iter(jobs)

        async def worker() -> None:
            for job in waiting:
                await self.client.create(JOBS, self.namespace, job)
                self.born[job["metadata"]["name"]] = time.monotonic()

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))

    async def unsuspend(self, names: Sequence[str]) -> None:
        """What the service does in the end, done by hand."""
        waiting = iter(names)

        async def worker() -> None:
            for name in waiting:
                await self.client.patch(JOBS, self.namespace, name, {"spec": {"suspend": False}})

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))

    async def until_started(self, count: int, within_s: float) -> None:
        await _until(lambda: len(self.started) >= count, within_s)

    async def until_ended(self, count: int, within_s: float) -> None:
        await _until(lambda: len(self.ended) >= count, within_s)

    async def watch(self) -> None:
        """Until cancelled."""
        where = Selection(namespace=self.namespace)
        listed = await self.client.list(JOBS, where)
        start = WatchStart(resource_version=listed.resource_version, timeout_s=3600, silence_s=3600)
        splitter = LineSplitter()
        async with self.client.watch(JOBS, where, start) as chunks:
            self.ready.set()
            async for chunk in chunks:
                for line in splitter.feed(chunk):
                    self._take(_EVENTS.decode(line))
        raise RuntimeError("the watch has ended")

    def _take(self, event: _Event) -> None:
        if event.type not in ("ADDED", "MODIFIED"):
            return
        job = _JOB.decode(event.object)
        now = time.monotonic()
        if not job.spec.suspend:
            self.started.setdefault(job.metadata.name, now)
        if any(one.type == "Complete" and one.status == "True" for one in job.status.conditions):
            self.ended.setdefault(job.metadata.name, now)


@asynccontextmanager
async def crowd(file: Path, namespace: str) -> AsyncIterator[Crowd]:
    """With its watch running."""
    config = dataclasses.replace(kubeconfig.load(file, None), limits=UNLIMITED)
    async with KubeClient(config) as client:
        found = Crowd(client, namespace)
        async with asyncio.TaskGroup() as group:  # a watch that breaks breaks the measurement
            watching = group.create_task(found.watch())
            await found.ready.wait()
            yield found
            watching.cancel()


async def _until(question: Callable[[], bool], within_s: float) -> None:
    async with asyncio.timeout(within_s):
        while not question():  # noqa: ASYNC110 - the watch fills plain dicts
            await asyncio.sleep(0.02)

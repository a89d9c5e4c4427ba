"""The receiving end of a reflector in a test: what has arrived, and what the world looks like after it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from app.kube.client import KubeClient
from app.kube.codec import ManifestCodec
from app.kube.config import ClusterConfig
from app.kube.outbox import Batch
from app.kube.reflector import Known, Pace, Reflector, Source, nothing_known
from app.kube.resources import Resource

WIDGETS = Resource("x.dev", "v1", "widgets")
QUICK = Pace(
    window_s=0.005,
    batch=50,
    silence_s=2.0,
    first_backoff_s=0.02,
    most_backoff_s=0.3,
)

Manifest = dict[str, Any]


@dataclass
class Receiver:
    batches: list[Batch[Manifest]] = field(default_factory=list)
    world: dict[str, Manifest] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)
    refused: list[Batch[Manifest]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, batch: Batch[Manifest]) -> None:
        if self.failures:
            self.refused.append(batch)
            raise self.failures.pop(0)
        self.batches.append(batch)
        for ref in batch.deleted:
            present = self.world.get(ref.name)
            if present is not None and present["metadata"]["uid"] == ref.uid:
                del self.world[ref.name]
        for manifest in batch.changed:
            self.world[manifest["metadata"]["name"]] = manifest
        self.arrived.set()

    @property
    def sizes(self) -> dict[str, Any]:
        """What each object's spec says, by name."""
        return {name: manifest["spec"].get("n") for name, manifest in sorted(self.world.items())}

    @property
    def deleted(self) -> list[str]:
        return [ref.uid for batch in self.batches for ref in batch.deleted]

    async def until(self, expected: dict[str, Any], timeout_s: float = 10.0) -> None:
        """Wait until the world is as expected, or fail saying how it is instead."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.sizes != expected:
                    self.arrived.clear()
                    await self.arrived.wait()
        except TimeoutError:
            assert self.sizes == expected


@asynccontextmanager
async def following(
    url: str,
    receiver: Receiver,
    *,
    known: Known = nothing_known,
    pace: Pace = QUICK,
    **changed: Any,
) -> AsyncIterator[Reflector[Manifest]]:
    """A reflector of widgets at work, until the block ends or it fails."""
    async with KubeClient(ClusterConfig(server=url)) as client:
        reflector = Reflector(
            client,
            Source(resource=WIDGETS, codec=ManifestCodec()),
            receiver,
            random=Random(1),
            known=known,
            pace=replace(pace, **changed),
        )
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector
            if task.done():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

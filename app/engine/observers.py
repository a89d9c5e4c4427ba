"""Watches the cluster and records what it shows: jobs of every supported kind, namespaces, priority classes.

Each kind has its reflector; each batch becomes one transaction of intake, and the sink does not return before that has
committed, so nothing is lost and a slow database slows the watching down. Jobs are told apart by uid: one that was
deleted and made again under its name is two jobs.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from app.core.manifests import Manifest
from app.core.selectors import LabelSelector
from app.engine.notices import Notices
from app.engine.sightings import Sightings
from app.engine.supervisor import keep
from app.intake.jobs import JobIntake
from app.intake.namespaces import SeenNamespace, observe_namespaces
from app.kube.client import KubeClient
from app.kube.codec import ManifestCodec, Metadata, SlimObject, StructCodec
from app.kube.outbox import Batch
from app.kube.reflector import Reflector, Source
from app.kube.resources import NAMESPACES, PRIORITY_CLASSES, Resource
from app.store import workloads
from app.store.lease import Lease
from app.store.session import Database

log = structlog.get_logger("engine.observers")


class PriorityClassObject(SlimObject, rename="camel", gc=False):
    metadata: Metadata
    value: int = 0


@dataclass(slots=True)
class PriorityClasses:
    """The cluster's own priority classes by name, as last seen."""

    values: dict[str, int] = field(default_factory=dict)

    async def take(self, batch: Batch[PriorityClassObject]) -> None:
        for ref in batch.deleted:
            self.values.pop(ref.name, None)
        for one in batch.changed:
            self.values[one.metadata.name] = one.value


@dataclass(slots=True)
class Namespaces:
    """The labels of the cluster's namespaces, as last seen."""

    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def take(self, batch: Batch[SlimObject]) -> None:
        for ref in batch.deleted:
            self.labels.pop(ref.name, None)
        for one in batch.changed:
            self.labels[one.metadata.name] = one.metadata.labels

    def match(self, selector: LabelSelector | None, name: str) -> bool:
        """Every namespace carries its own name as a label, also one that was not seen yet."""
        labels = {"kubernetes.io/metadata.name": name, **self.labels.get(name, {})}
        return selector is None or selector.matches(labels)


@dataclass(slots=True, kw_only=True)
class Observers:
    client: KubeClient
    database: Database
    lease: Lease
    clock: Callable[[], datetime]
    notices: Notices
    priority_classes: PriorityClasses
    namespaces: Namespaces
    sightings: Sightings
    hold: Callable[[JobIntake, Manifest], Awaitable[None]]
    """Called with a job that cannot be queued: it must not run."""
    recorded: Callable[[], None]
    """Called after each batch: the loops have something to look at."""

    async def run(self, intakes: Mapping[str, JobIntake]) -> None:
        """Namespaces and priority classes are known before the first job is judged by them."""
        dice = random.Random()  # noqa: S311 (jitter)
        namespaces = Reflector(
            self.client,
            Source(resource=NAMESPACES, codec=StructCodec(SlimObject)),
            self._take_namespaces,
            known=self._known_namespaces,
            random=dice,
        )
        classes = Reflector(
            self.client,
            Source(resource=PRIORITY_CLASSES, codec=StructCodec(PriorityClassObject)),
            self.priority_classes.take,
            random=dice,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(keep("namespaces", namespaces.run))
            group.create_task(keep("priority classes", classes.run))
            await namespaces.health.synced.wait()
            await classes.health.synced.wait()
            for kind, intake in intakes.items():
                jobs = self._jobs(kind, intake, dice)
                group.create_task(keep(kind, jobs.run))

    def _jobs(self, kind: str, intake: JobIntake, dice: random.Random) -> Reflector[Manifest]:
        async def take(batch: Batch[Manifest]) -> None:
            self.sightings.forget(ref.uid for ref in batch.deleted)
            self.sightings.note(batch.changed)
            if batch.deleted:
                await intake.vanished([ref.uid for ref in batch.deleted])
            for refused in await intake.observe(batch.changed):
                log.warning(
                    "job.refused", job=refused.job["metadata"]["name"], error=refused.error.message
                )
                self.notices.refused(
                    refused.job, "ErrWorkloadCompose", refused.error.message, self.clock()
                )
                await self.hold(intake, refused.job)
            self.recorded()

        async def known() -> dict[tuple[str, str], str]:
            async with self.database.read() as tx:
                return {
                    (job.namespace, job.job_name or ""): job.job_uid
                    async for page in workloads.live_jobs(tx)
                    for job in page
                    if job.job_kind == kind
                }

        of = intake.adapter.kind
        source = Source(resource=Resource(of.group, of.version, of.plural), codec=ManifestCodec())
        return Reflector(self.client, source, take, known=known, random=dice)

    async def _take_namespaces(self, batch: Batch[SlimObject]) -> None:
        self.namespaces.take(batch)
        seen = [
            SeenNamespace(name=one.metadata.name, uid=one.metadata.uid, labels=one.metadata.labels)
            for one in batch.changed
        ]
        gone = [ref.name for ref in batch.deleted]
        await observe_namespaces(self.database, self.lease, seen, gone, self.clock())
        self.recorded()

    async def _known_namespaces(self) -> dict[tuple[str, str], str]:
        async with self.database.read() as tx:
            found = await tx.list("Namespace")
        return {("", one["metadata"]["name"]): one["metadata"]["uid"] for one in found}

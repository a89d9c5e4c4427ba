"""What a leader does while it leads: all of its loops, wired to wake each other.

The wake-ups are events in memory and only hints. Whatever one loop leaves for another is in Postgres, and each of them
looks there once a second anyway.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from app.core.image import Image
from app.core.policy import Policy
from app.engine import registration
from app.engine.cycle_loop import CycleLoop
from app.engine.events import Recorder
from app.engine.janitor import Janitor
from app.engine.notices import Notices
from app.engine.observers import Namespaces, Observers, PriorityClasses
from app.engine.registration import Endpoint
from app.engine.sightings import Sightings
from app.engine.statuses import StatusLoop
from app.engine.stepper import Stepper
from app.engine.supervisor import keep
from app.engine.sync import SyncLoop
from app.errors import NotFound
from app.intake.jobs import JobIntake
from app.jobs.identity import JobKind
from app.jobs.registry import ADAPTERS
from app.kube.client import KubeClient
from app.kube.resources import Resource
from app.store.lease import Lease
from app.store.listen import listen
from app.store.session import Database
from app.store.tracking import StoredWorkload

REGISTER_EVERY_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the loops are given: `endpoint` is where the cluster finds the webhooks."""

    database: Database
    client: KubeClient
    endpoint: Endpoint
    policy: Policy
    instance: str
    clock: Callable[[], datetime]
    new_uid: Callable[[], str]
    unmanaged: frozenset[str]
    """Namespaces whose jobs are none of ours."""


class Service:
    """The loops of one term of leadership."""

    def __init__(self, given: Surroundings, lease: Lease) -> None:
        self._given = given
        self._recorder = Recorder(given.client, given.instance)
        self._cycle_wake, self._sync_wake = asyncio.Event(), asyncio.Event()
        self._moved = asyncio.Event()
        self._classes, self._namespaces = PriorityClasses(), Namespaces()
        sightings = Sightings()
        notices = Notices(self._recorder)
        self.intakes = {
            adapter.kind.kind: JobIntake(
                database=given.database,
                lease=lease,
                adapter=adapter,
                clock=given.clock,
                new_uid=given.new_uid,
                manages=self._manages,
                priority_of=self._classes.values.get,
                policy=given.policy,
            )
            for adapter in ADAPTERS
            if _is_enabled(adapter.kind, given.policy)
        }
        self.cycle = CycleLoop(
            database=given.database,
            lease=lease,
            policy=given.policy,
            clock=given.clock,
            wake=self._cycle_wake,
            decided=self._sync_wake.set,
            moved=self._moved.set,
            notices=notices,
        )
        stepper = Stepper(
            client=given.client,
            lease=lease,
            clock=given.clock,
            notices=notices,
            sightings=sightings,
            flavors=lambda: self.cycle.following.flavors,
            intakes=self.intakes,
        )
        self._sync = SyncLoop(
            database=given.database,
            lease=lease,
            clock=given.clock,
            wake=self._sync_wake,
            stepper=stepper,
            released=self._cycle_wake.set,
        )
        self._observers = Observers(
            client=given.client,
            database=given.database,
            lease=lease,
            clock=given.clock,
            notices=notices,
            priority_classes=self._classes,
            namespaces=self._namespaces,
            sightings=sightings,
            hold=stepper.hold,
            recorded=self._after_intake,
        )
        self._statuses = StatusLoop(
            database=given.database,
            lease=lease,
            clock=given.clock,
            image=self._image,
            moved=self._moved,
        )
        self._janitor = Janitor(
            database=given.database,
            lease=lease,
            clock=given.clock,
            image=self._image,
            deleting=self._deleting,
            orphaned=self._look_again,
        )
        self._again: asyncio.Queue[StoredWorkload] = asyncio.Queue()

    async def run(self) -> None:
        """Until cancelled, or LeaseLost."""
        async with asyncio.TaskGroup() as group:
            group.create_task(keep("registration", self._register))
            group.create_task(keep("hints", self._hear))
            group.create_task(keep("cycle", self.cycle.run))
            group.create_task(keep("sync", self._sync.run))
            group.create_task(keep("observers", lambda: self._observers.run(self.intakes)))
            group.create_task(keep("statuses", self._statuses.run))
            group.create_task(keep("janitor", self._janitor.run))
            group.create_task(keep("events", self._recorder.run))
            group.create_task(keep("orphans", self._reenlist))

    async def _register(self) -> None:
        """Again and again: without it, a job created unsuspended runs until it is seen."""
        kinds = [intake.adapter.kind for intake in self.intakes.values()]
        while True:
            await registration.register(self._given.client, self._given.endpoint, kinds)
            await asyncio.sleep(REGISTER_EVERY_S)

    async def _hear(self) -> None:
        hints = listen(self._given.database.url)
        async with contextlib.aclosing(hints):
            async for _ in hints:
                self._after_intake()

    async def _reenlist(self) -> None:
        """A workload was deleted, its job was not: the job queues again, under a new workload."""
        while True:
            row = await self._again.get()
            try:
                await self._observe_job(row)
            except BaseException:
                self._look_again(row)
                raise

    async def _observe_job(self, row: StoredWorkload) -> None:
        job = row.tracking.job or {}
        intake = self.intakes.get(str(job.get("kind")))
        if intake is None:
            return
        of = intake.adapter.kind
        resource = Resource(of.group, of.version, of.plural)
        namespace = row.manifest["metadata"]["namespace"]
        with contextlib.suppress(NotFound):
            live = await self._given.client.get(resource, namespace, str(job["name"]))
            await intake.observe([live])

    def _manages(self, namespace: str) -> bool:
        selected = self._namespaces.match(self._given.policy.managed.namespaces, namespace)
        return selected and namespace not in self._given.unmanaged

    def _look_again(self, row: StoredWorkload) -> None:
        self._again.put_nowait(row)

    def _image(self) -> Image:
        return self.cycle.following.image

    def _deleting(self) -> list[str]:
        image = self._image()
        return sorted(
            one.uid
            for one in image.workloads.values()
            if one.deleting and (one.admission is None or one.finished)
        )

    def _after_intake(self) -> None:
        self._cycle_wake.set()
        self._sync_wake.set()


def _is_enabled(kind: JobKind, policy: Policy) -> bool:
    """Whether the configuration names this framework: ``batch/job``, or just ``pod`` for some."""
    named = policy.managed.frameworks
    plain = kind.kind.lower()
    return named is None or f"{kind.group}/{plain}" in named or plain in named

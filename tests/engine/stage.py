"""The leader's loops over a real Postgres, in one thread and on a clock of their own.

The cycle loop, the stepper and the janitor are the real ones; observing and syncing are done step by step, so a test
says exactly what has happened when. The cluster is `tests.engine.cluster`.
"""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from app.core.image import Image
from app.core.manifests import Manifest
from app.core.metadata import condition, status_of
from app.core.policy import DEFAULT, Policy
from app.engine.cycle_loop import CycleLoop
from app.engine.events import Recorder
from app.engine.janitor import Janitor
from app.engine.notices import Notices
from app.engine.outcomes import Defer, Done
from app.engine.sightings import Sightings
from app.engine.stepper import Stepper
from app.intake.jobs import JobIntake
from app.intake.kinds import DEFINITIONS
from app.intake.objects import change_object
from app.jobs.batch_job import BatchJobAdapter
from app.kube.client import KubeClient
from app.store import lease, workloads
from app.store.audit import Actor
from app.store.lease import Lease
from app.store.session import Database
from app.store.tracking import StoredWorkload
from app.store.workloads import Synced
from tests.engine.cluster import Jobs

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PERSON = Actor("user", "admin")
_MOST_ROUNDS = 60


class Stage:
    """One leader with one policy; `restart` gives way to the next."""

    def __init__(self, database: Database, leading: Lease, policy: Policy) -> None:
        self.database, self.lease, self.policy = database, leading, policy
        self.now = NOW
        self.jobs = Jobs()
        self._numbers = itertools.count(1)
        self._begin()

    @classmethod
    async def open(cls, database: Database, policy: Policy = DEFAULT) -> "Stage":
        leading = await lease.take(database, "leader", ttl_s=600)
        assert leading is not None
        stage = cls(database, leading, policy)
        await stage.loop.following.load()
        return stage

    async def restart(self, policy: Policy) -> None:
        """A new process with another configuration, over the same database."""
        self.policy = policy
        self._begin()
        await self.loop.following.load()
        await self.settle()

    def _begin(self) -> None:
        client = cast("KubeClient", self.jobs)
        notices = Notices(Recorder(client, "test"))
        self.loop = CycleLoop(
            database=self.database,
            lease=self.lease,
            policy=self.policy,
            clock=self._clock,
            wake=asyncio.Event(),
            decided=lambda: None,
            moved=lambda: None,
            notices=notices,
        )
        self.intake = JobIntake(
            database=self.database,
            lease=self.lease,
            adapter=BatchJobAdapter(),
            clock=self._clock,
            new_uid=self._new_uid,
            manages=lambda _: True,
            priority_of=lambda _: 0,
            policy=self.policy,
        )
        self.stepper = Stepper(
            client=client,
            lease=self.lease,
            clock=self._clock,
            notices=notices,
            sightings=Sightings(),
            flavors=lambda: self.loop.following.flavors,
            intakes={"Job": self.intake},
        )
        self.janitor = Janitor(
            database=self.database,
            lease=self.lease,
            clock=self._clock,
            image=self._image,
            deleting=self._deleting,
            orphaned=lambda _: None,
        )

    def _image(self) -> Image:
        return self.loop.following.image

    def _deleting(self) -> list[str]:
        return [one.uid for one in self._image().workloads.values() if one.deleting]

    def _clock(self) -> datetime:
        return self.now

    def _new_uid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._numbers):012d}"

    # What people and the cluster do

    async def put(self, *manifests: Manifest) -> None:
        """Create or replace objects as through the API."""
        for manifest in manifests:
            metadata = manifest["metadata"]
            await self.change(
                manifest["kind"],
                metadata.get("namespace"),
                metadata["name"],
                lambda _, new=manifest: new,
            )

    async def change(self, kind: str, namespace: str | None, name: str, change: Any) -> None:
        def prepared(old: Manifest | None) -> Manifest:
            fresh = {
                "uid": self._new_uid(),
                "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            }
            new = change(old)
            metadata = {**(old["metadata"] if old else fresh), **new["metadata"]}
            whole = {"apiVersion": "kueue.x-k8s.io/v1beta2", **new, "metadata": metadata}
            return DEFINITIONS[kind].prepare(whole, old)

        place = (kind, namespace, name)
        await change_object(
            self.database, place, prepared, actor=PERSON, policy=self.policy, dry_run=False
        )

    async def edit_workload(self, job: str, **changes: Any) -> None:
        """A person or another controller edits spec or status of the workload of a job."""
        metadata = (await self.workload(job))["metadata"]

        def change(old: Manifest) -> Manifest:
            return {**old, **{part: {**old.get(part, {}), **new} for part, new in changes.items()}}

        await self.change("Workload", metadata["namespace"], metadata["name"], change)

    # Time and loops

    async def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        await self.settle()

    async def settle(self) -> None:
        """Observe, decide and sync until nothing moves."""
        for _ in range(_MOST_ROUNDS):
            self.jobs.controller()
            await self._observe()
            moved = await self._cycle()
            moved = await self._sync() or moved
            await self.janitor.sweep()
            if not moved:
                return
        raise AssertionError("It does not come to rest.")

    async def _observe(self) -> None:
        async with self.database.read() as tx:
            known = [job async for page in workloads.live_jobs(tx) for job in page]
        gone = [job.job_uid for job in known if job.job_name not in self.jobs.live]
        await self.intake.vanished(gone)
        assert await self.intake.observe(list(self.jobs.all())) == []

    async def _cycle(self) -> bool:
        self.loop._clock_seen_at = float("-inf")
        moved = False
        for _ in range(_MOST_ROUNDS):
            if not await self.loop.step():
                return moved
            moved = True
        raise AssertionError("The cycle does not come to rest.")

    async def _sync(self) -> bool:
        async with self.database.read() as tx:
            due = await workloads.to_sync(tx, now=self.now)
        for row in due:
            outcome = await self.stepper.step(row)
            async with self.database.write(PERSON) as tx:
                uid = row.manifest["metadata"]["uid"]
                if isinstance(outcome, Done):
                    done = Synced(uid=uid, decided_version=row.tracking.decided_version)
                    await workloads.mark_synced(tx, [done])
                elif isinstance(outcome, Defer):
                    await workloads.defer_sync(tx, uid, until=self.now)
        return bool(due)

    # Looking

    async def row(self, job: str) -> StoredWorkload | None:
        async with self.database.read() as tx:
            return await workloads.by_job_uid(tx, f"job-{job}")

    async def workload(self, job: str) -> Manifest:
        row = await self.row(job)
        assert row is not None
        return row.manifest

    async def shown(self, job: str, kind: str) -> tuple[str, str] | None:
        """Status and reason of a condition."""
        found = condition(status_of(await self.workload(job)), kind)
        return (found["status"], found["reason"]) if found else None

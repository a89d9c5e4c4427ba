"""One key: what does its row want of its job, and what is the next thing to do about that?

A row that runs wants its job started in this attempt; every other row wants it stopped and its template restored. The
row and the live job go through the repair matrix first, so a job that was edited, suspended or finished by its owner
meanwhile is answered as when the observer sees it. Permanent refusals (the job contradicts its admission, or the
API server will not have the patch) end the attempt after `TRIES`; everything else is tried again.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core import deadlines
from app.core.manifests import Manifest
from app.engine.notices import Notices
from app.engine.outcomes import Defer, Done, Gone, Outcome, Settled
from app.engine.sightings import Sightings
from app.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, TooLarge
from app.intake.jobs import JobIntake
from app.intake.repair import Repair, observed
from app.intake.workloads import runs
from app.jobs.adapter import JobAdapter, JobFacts, StopInfo
from app.jobs.patches import Patch
from app.jobs.start import start_info
from app.kube.client import KubeClient, Selection
from app.kube.resources import PODS, Resource
from app.store.lease import Lease
from app.store.tracking import StoredWorkload

TRIES = 3
WRITES_A_STEP = 4
"""The longest sequence of writes that an adapter asks for, and one more."""
STOP_POLL = timedelta(seconds=1)
PERMANENT = (Invalid, BadRequest, Forbidden, TooLarge)


@dataclass(slots=True, kw_only=True)
class Stepper:
    client: KubeClient
    lease: Lease
    clock: Callable[[], datetime]
    notices: Notices
    sightings: Sightings
    flavors: Callable[[], Mapping[str, Manifest]]
    """All ResourceFlavors by name."""
    intakes: dict[str, JobIntake]
    """By the kind of job."""

    async def step(self, row: StoredWorkload) -> Outcome:
        intake = self.intakes.get(str((row.tracking.job or {}).get("kind")))
        if intake is None:
            return (
                Done()
            )  # a workload that somebody made without a job: there is nothing to carry out
        seen = self._seen(intake, row)
        if seen is not None:
            with contextlib.suppress(Conflict, NotFound):  # it has moved on since
                return await self._start(intake, row, seen)
        job = await self._live(intake.adapter, row)
        if job is None:
            return await self._without_job(intake, row)
        return await self._move(intake, row, job)

    async def _move(self, intake: JobIntake, row: StoredWorkload, job: Manifest) -> Outcome:
        if await self._is_behind(intake, row, job):
            return Settled()
        if runs(row.manifest):
            return await self._start(intake, row, job)
        if self._has_expired(intake, row):
            return await self._clear_away(intake.adapter, row, job)
        return await self._stop(intake, row, job)

    def _has_expired(self, intake: JobIntake, row: StoredWorkload) -> bool:
        """We deactivated it, nobody has cared for so long that its job is to go."""
        expires_at = deadlines.expires_at(row.manifest, intake.policy.retention)
        is_out = row.tracking.state == "inactive"
        return is_out and expires_at is not None and expires_at <= self.clock()

    async def _clear_away(self, adapter: JobAdapter, row: StoredWorkload, job: Manifest) -> Outcome:
        """Delete the job; its workload goes when the job is seen to be gone."""
        metadata = job["metadata"]
        where = (metadata["namespace"], metadata["name"])
        await self.client.delete(_resource(adapter), *where, uid=metadata["uid"])
        self.notices.cleared_away(job, row.manifest["metadata"]["name"], self.clock())
        return Done()

    async def hold(self, intake: JobIntake, job: Manifest) -> None:
        """Suspend a job that no workload can stand for, if it runs: nothing will ever admit it."""
        facts = intake.adapter.facts(job)
        if facts.suspended:
            return
        attempt = max(facts.attempt or 0, facts.stopped_attempt or 0)
        stop = StopInfo(attempt=attempt, epoch=self.lease.epoch, original=None)
        step = intake.adapter.stop_step(job, stop)
        if step.patch is not None:
            with contextlib.suppress(Conflict, NotFound):  # it moved: it will be seen again
                await self._send(intake.adapter, job, step.patch)

    def _seen(self, intake: JobIntake, row: StoredWorkload) -> Manifest | None:
        """A job that is to be started, as the watch showed it: the write is refused if it has changed since.

        That protects the job and not the row, so it must say nothing that would have to be written down before.
        """
        job = self.sightings.take(str((row.tracking.job or {})["uid"]))
        if job is None or not runs(row.manifest) or not intake.adapter.facts(job).suspended:
            return None
        is_news = intake.adapter.original(job) != row.tracking.template
        return None if is_news or self._changes(intake, row, job) else job

    async def _live(self, adapter: JobAdapter, row: StoredWorkload) -> Manifest | None:
        """The job itself; another one under the same name is not it."""
        known = row.tracking.job or {}
        try:
            job = await self.client.get(
                _resource(adapter), row.manifest["metadata"]["namespace"], str(known["name"])
            )
        except NotFound:
            return None
        return job if job["metadata"]["uid"] == known["uid"] else None

    async def _without_job(self, intake: JobIntake, row: StoredWorkload) -> Outcome:
        """Quota stays charged until the last pod of a deleted job is gone."""
        selector = intake.adapter.pod_selector(str((row.tracking.job or {})["uid"]))
        namespace = row.manifest["metadata"]["namespace"]
        pods = await self.client.list(PODS, Selection(namespace=namespace, labels=selector))
        if any(_holds_resources(pod) for pod in pods.items):
            return Defer(until=self.clock() + STOP_POLL)
        return Gone()

    async def _is_behind(self, intake: JobIntake, row: StoredWorkload, job: Manifest) -> bool:
        """The job says something that changes what its row wants: record that first."""
        if not self._changes(intake, row, job):
            return False
        await intake.observe([job])
        return True

    def _changes(self, intake: JobIntake, row: StoredWorkload, job: Manifest) -> bool:
        """Only whether it does is asked here, so the numbers of priority classes do not matter."""
        repair = Repair(
            adapter=intake.adapter,
            epoch=self.lease.epoch,
            now=self.clock(),
            priority_of=lambda _: 0,
            policy=intake.policy,
        )
        with contextlib.suppress(Invalid):  # it can no longer be queued: that changes it, too
            manifest, tracking = repair.apply(job, row)
            return manifest is not row.manifest or tracking.template != row.tracking.template
        return True

    async def _start(self, intake: JobIntake, row: StoredWorkload, job: Manifest) -> Outcome:
        adapter, attempt = intake.adapter, row.tracking.attempt
        facts = adapter.facts(job)
        if facts.attempt == attempt and not facts.suspended:
            return Done(job=observed(facts))
        if not facts.suspended:
            await intake.take_back(row.manifest["metadata"]["uid"], attempt)
            return Settled()
        template = adapter.original(job)
        if facts.attempt != attempt and template != row.tracking.template:
            await intake.keep_template(row.manifest["metadata"]["uid"], template)
        try:
            info = start_info(row.manifest, self.flavors(), attempt=attempt, epoch=self.lease.epoch)
            for _ in range(WRITES_A_STEP):
                patch = adapter.start_patch(job, info)
                job = await self._send(adapter, job, patch)
                if patch.final:
                    break
        except PERMANENT as error:
            return await self._refused(intake, row, job, error.message)
        self.notices.started(job, row.manifest["status"]["admission"]["clusterQueue"], self.clock())
        return Done(job=observed(adapter.facts(job)))

    async def _stop(self, intake: JobIntake, row: StoredWorkload, job: Manifest) -> Outcome:
        adapter, tracking = intake.adapter, row.tracking
        template = dict(tracking.template) if tracking.template is not None else None
        info = StopInfo(attempt=tracking.attempt, epoch=self.lease.epoch, original=template)
        is_news = _begins_to_stop(adapter.facts(job), row)
        for _ in range(WRITES_A_STEP):
            step = adapter.stop_step(job, info)
            if step.patch is None:
                break
            job = await self._send(adapter, job, step.patch)
        if is_news:
            self.notices.stopped(job, _why_stopped(row.manifest), self.clock())
        if not step.done:
            return Defer(until=self.clock() + STOP_POLL)
        if tracking.state == "evicting":
            await intake.release(row.manifest["metadata"]["uid"], tracking.attempt, job)
            return Settled()
        return Done(job=observed(adapter.facts(job)))

    async def _refused(
        self, intake: JobIntake, row: StoredWorkload, job: Manifest, why: str
    ) -> Outcome:
        if row.tracking.sync_failures + 1 < TRIES:
            return Defer(until=self.clock() + STOP_POLL)
        self.notices.refused(job, "FailedToStart", why, self.clock())
        await intake.give_up(row.manifest["metadata"]["uid"], row.tracking.attempt, why)
        return Settled()

    async def _send(self, adapter: JobAdapter, job: Manifest, patch: Patch) -> Manifest:
        metadata = job["metadata"]
        return await self.client.patch(
            _resource(adapter),
            metadata["namespace"],
            metadata["name"],
            patch.body,
            patch_type=patch.type,
            subresource=patch.subresource,
        )


def _resource(adapter: JobAdapter) -> Resource:
    return Resource(adapter.kind.group, adapter.kind.version, adapter.kind.plural)


def _begins_to_stop(facts: JobFacts, row: StoredWorkload) -> bool:
    """It still runs; or its owner suspended it, and we have not written to it since."""
    is_evicted = row.tracking.state == "evicting"
    return not facts.suspended or (is_evicted and facts.stopped_attempt != row.tracking.attempt)


def _holds_resources(pod: Manifest) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _why_stopped(workload: Manifest) -> str:
    for condition in (workload.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Evicted" and condition["status"] == "True":
            return str(condition.get("message") or condition["reason"])
    return ""

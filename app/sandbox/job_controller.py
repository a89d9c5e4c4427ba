"""The loop that carries out `plan` for every Job whose facts changed.

It waits until its caches have seen its own last writes, plans, creates and deletes pods, writes the status, and lets
go of counted pods, in this order, so that a failure anywhere leaves something that the next round completes. Finished
Jobs are removed when their ``ttlSecondsAfterFinished`` is over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from app.errors import AppError
from app.sandbox.batch import facts
from app.sandbox.batch.plan import Pace, Plan, forget, plan
from app.sandbox.batch.pods import pod_for
from app.sandbox.batch.rules import Rules
from app.sandbox.batch.tally import Memory
from app.sandbox.informer import Informer, Key, key_of
from app.sandbox.recorder import Recorder
from app.sandbox.work import WorkQueue
from app.sandbox.writer import Writer

_NAME = "job-controller"


@dataclass(slots=True)
class _Notes:
    """What is known of one Job besides the caches."""

    uid: str
    memory: Memory = field(default_factory=Memory)
    job_revision: int = 0
    pod_revision: int = 0
    finished_at: datetime | None = None  # as seen here: the status keeps whole seconds only


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    jobs: Informer
    pods: Informer


class JobController:
    def __init__(
        self, writer: Writer, caches: Caches, recorder: Recorder, *, pace: Pace, rules: Rules
    ) -> None:
        self.queue: WorkQueue[Key] = WorkQueue("jobs")
        self.stray_queue: WorkQueue[Key] = WorkQueue("stray-pods")
        self._writer = writer
        self._jobs = caches.jobs
        self._pods = caches.pods
        self._recorder = recorder
        self._pace = pace
        self._rules = rules
        self._notes: dict[Key, _Notes] = {}
        caches.jobs.on_change(self._job_changed)
        caches.pods.on_change(self._pod_changed)

    @property
    def _clock(self) -> Callable[[], datetime]:
        return self._writer.clock

    @property
    def _job_kind(self) -> Kind:
        return self._jobs.kind

    def _job_changed(self, new: Manifest | None, old: Manifest | None) -> None:
        changed = new or old
        if changed is None:
            return
        self.queue.add(key_of(changed))
        if new is None:
            for pod in self._pods.owned(changed["metadata"]["uid"]):
                self.stray_queue.add(key_of(pod))

    def _pod_changed(self, new: Manifest | None, old: Manifest | None) -> None:
        pod = new or old
        if pod is None:
            return
        owner = facts.controlling_job(pod)
        if owner is not None:
            self.queue.add((pod["metadata"]["namespace"], owner["name"]))
        if new is not None and facts.tracked(new) and self._is_stray(new):
            self.stray_queue.add(key_of(new))

    def _is_stray(self, pod: Manifest) -> bool:
        """Tell whether the Job that should count this pod is gone, or has disowned it."""
        owner = facts.controlling_job(pod)
        if owner is None:
            return True
        job = self._jobs.objects.get((pod["metadata"]["namespace"], owner["name"]))
        return job is None or job["metadata"]["uid"] != owner["uid"]

    async def sync_stray(self, key: Key) -> None:
        """Nobody counts such a pod: let go of it."""
        pod = self._pods.objects.get(key)
        if pod is not None and facts.tracked(pod) and self._is_stray(pod):
            await self._writer.drop_finalizer(self._pods.kind, pod, facts.TRACKING_FINALIZER)

    async def sync(self, key: Key) -> None:
        await self._catch_up(key)
        job = self._jobs.objects.get(key)
        if job is None:
            self._notes.pop(key, None)
            return
        if facts.managed_elsewhere(job):
            return
        if facts.finished(job):
            await self._tidy(key, job)
            return
        await self._advance(key, job, self._own_notes(key, job))

    async def _catch_up(self, key: Key) -> None:
        notes = self._notes.get(key)
        if notes is not None:
            await self._jobs.reached(notes.job_revision)
            await self._pods.reached(notes.pod_revision)

    def _own_notes(self, key: Key, job: Manifest) -> _Notes:
        notes = self._notes.get(key)
        if notes is None or notes.uid != job["metadata"]["uid"]:
            notes = self._notes[key] = _Notes(uid=job["metadata"]["uid"])
        return notes

    async def _advance(self, key: Key, job: Manifest, notes: _Notes) -> None:
        pods = self._pods_of(job)
        steps = plan(job, pods, notes.memory, self._clock(), pace=self._pace, rules=self._rules)
        notes.memory = steps.remember
        refusal = await self._move_pods(job, steps, notes)
        if refusal is None:
            await self._write_status(job, steps, notes)
            await self._release(steps.release, notes)
        else:
            await self._recorder.tell(
                job, _NAME, "FailedCreate", f"Error creating: {refusal.message}", "Warning"
            )
            raise refusal
        if steps.again_at is not None:
            self.queue.add_later(key, (steps.again_at - self._clock()).total_seconds())

    def _pods_of(self, job: Manifest) -> Sequence[Manifest]:
        uid = job["metadata"]["uid"]
        pods = (pod for pod in self._pods.owned(uid) if facts.controller_uid(pod) == uid)
        return sorted(pods, key=lambda pod: pod["metadata"]["uid"])

    async def _move_pods(self, job: Manifest, steps: Plan, notes: _Notes) -> AppError | None:
        """Return what kept pods from being created."""
        for pod in steps.delete:
            freed = await self._writer.drop_finalizer(
                self._pods.kind, pod, facts.TRACKING_FINALIZER
            )
            gone = await self._writer.delete(self._pods.kind, pod)
            _note_pod(notes, freed, gone)
            await self._recorder.tell(
                job, _NAME, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}"
            )
        for index in steps.create:
            try:
                pod = await self._writer.create(self._pods.kind, pod_for(job, index))
            except AppError as error:
                return error
            _note_pod(notes, pod)
            await self._recorder.tell(
                job, _NAME, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}"
            )
        return None

    async def _write_status(self, job: Manifest, steps: Plan, notes: _Notes) -> None:
        written = await self._writer.set_status(self._job_kind, job, steps.status)
        if written is not None:
            notes.job_revision = _revision(written)
        for one in steps.happenings:
            await self._recorder.tell(job, _NAME, one.reason, one.message, one.type)

    async def _release(self, pods: Sequence[Manifest], notes: _Notes) -> None:
        for pod in pods:
            freed = await self._writer.drop_finalizer(
                self._pods.kind, pod, facts.TRACKING_FINALIZER
            )
            _note_pod(notes, freed)
        uids = frozenset(pod["metadata"]["uid"] for pod in pods)
        notes.memory = forget(notes.memory, uids)

    async def _tidy(self, key: Key, job: Manifest) -> None:
        """Let go of pods that ended with the Job, and remove the Job itself when its time has come."""
        notes = self._own_notes(key, job)
        notes.finished_at = notes.finished_at or self._clock()
        await self._release([pod for pod in self._pods_of(job) if facts.tracked(pod)], notes)
        ttl_s = job["spec"].get("ttlSecondsAfterFinished")
        if ttl_s is None or facts.deleting(job):
            return
        due = notes.finished_at + timedelta(seconds=ttl_s / self._pace.speed)
        left_s = (due - self._clock()).total_seconds()
        if left_s > 0:
            self.queue.add_later(key, left_s)
        else:
            await self._writer.delete(self._job_kind, job)


def _revision(manifest: Manifest) -> int:
    return int(manifest["metadata"]["resourceVersion"])


def _note_pod(notes: _Notes, *written: Manifest | None) -> None:
    revisions = [_revision(one) for one in written if one is not None]
    notes.pod_revision = max(notes.pod_revision, *revisions, 0)

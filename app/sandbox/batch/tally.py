"""How many of a Job's pods run, stop, succeeded and failed, each counted exactly once?

A pod counts when it has ended and still carries the tracking finalizer; the finalizer goes after the count is stored.
In between the pod's uid is in `Memory.counted`. Indexed Jobs count distinct indexes instead of pods.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.core.manifests import Manifest
from app.sandbox.batch import facts, indexes


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the controller keeps of one Job between two syncs."""

    counted: frozenset[str] = (
        frozenset()
    )  # uids of pods that are in the status but still have the finalizer
    failures: int = 0  # since the last success
    last_failure_at: datetime | None = None
    started_at: datetime | None = None  # to the microsecond, where the status keeps whole seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    active: tuple[Manifest, ...]
    tracked: tuple[Manifest, ...]
    terminating: int
    succeeded: int
    failed: int
    indexes: frozenset[int]
    memory: Memory

    def with_the_rest_failed(self) -> "Tally":
        """When the Job fails, every pod that has not succeeded is counted as failed."""
        rest = {
            pod["metadata"]["uid"] for pod in self.tracked if facts.phase(pod) != "Succeeded"
        } - self.memory.counted
        memory = replace(self.memory, counted=self.memory.counted | rest)
        return replace(self, failed=self.failed + len(rest), memory=memory)


def tally(job: Manifest, pods: Sequence[Manifest], memory: Memory, now: datetime) -> Tally:
    status = facts.status_of(job)
    tracked = tuple(pod for pod in pods if facts.tracked(pod))
    fresh = [
        pod
        for pod in tracked
        if pod["metadata"]["uid"] not in memory.counted and _index_is_valid(pod, job)
    ]
    succeeded = [pod for pod in fresh if facts.phase(pod) == "Succeeded"]
    failed = [pod for pod in fresh if facts.failed(pod, job)]
    done = _indexes(job, status, succeeded) if facts.indexed(job) else frozenset()
    return Tally(
        active=tuple(pod for pod in pods if facts.active(pod)),
        tracked=tracked,
        terminating=sum(facts.terminating(pod) for pod in pods),
        succeeded=len(done) if facts.indexed(job) else status.get("succeeded", 0) + len(succeeded),
        failed=status.get("failed", 0) + len(failed),
        indexes=done,
        memory=_remembered(memory, succeeded, failed, now),
    )


def _index_is_valid(pod: Manifest, job: Manifest) -> bool:
    if not facts.indexed(job):
        return True
    index = facts.completion_index(pod)
    return index is not None and index < job["spec"]["completions"]


def _indexes(job: Manifest, status: Manifest, succeeded: Sequence[Manifest]) -> frozenset[int]:
    before = indexes.parse(status.get("completedIndexes") or "")
    new = {facts.completion_index(pod) for pod in succeeded}
    limit = job["spec"]["completions"]
    return frozenset(one for one in before | new if one is not None and one < limit)


def _remembered(
    memory: Memory, succeeded: Sequence[Manifest], failed: Sequence[Manifest], now: datetime
) -> Memory:
    uids = {pod["metadata"]["uid"] for pod in (*succeeded, *failed)}
    memory = replace(memory, counted=memory.counted | uids)
    if failed:
        before = 0 if succeeded else memory.failures
        return replace(memory, failures=before + len(failed), last_failure_at=now)
    if succeeded:
        return replace(memory, failures=0, last_failure_at=None)
    return memory

"""What must change in a workload's row because of what its job looks like now?

This is the level-based repair matrix: a row and a job go in, the row as it should be comes out, whatever events were
missed, repeated or reordered on the way. It decides nothing about quota and writes nothing to the cluster: where the
job must be moved, the row's `decided_version` goes ahead of its `synced_version`, and sync does the rest.

| row                | job                          | answer                                              |
| ------------------ | ---------------------------- | --------------------------------------------------- |
| none               | managed                      | a new pending row; an unsuspended job is suspended  |
| waiting            | asks for something else      | the row follows the job                             |
| waiting            | unsuspended                  | suspend it: nobody admitted it                      |
| admitted           | still suspended, older mark  | start it (again)                                    |
| admitted           | suspended, this attempt      | its owner suspended it: evict, do not fight         |
| admitted           | unsuspended, older mark      | not by us: sync looks, and evicts what runs so      |
| admitted           | asks for something else      | evict; the new size queues again                    |
| evicting           | any                          | sync goes on stopping it                            |
| any but finished   | finished                     | finished, quota given back                          |

Pure: uid and time come in as arguments. Kueue's jobframework reconciler is the model; it restarts a job whose owner
suspended it and replaces the Workload of a changed one, where we keep the row, its attempts and its history.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core import lifecycle, pods_ready
from app.core.manifests import Manifest
from app.core.metadata import spec_of, status_of
from app.core.policy import DEFAULT, Policy
from app.intake.kinds.metadata import IN_USE
from app.intake.kinds.workload import WORKLOAD
from app.intake.workloads import decide, runs, tracked
from app.jobs.adapter import JobAdapter, JobFacts
from app.store.tracking import StoredWorkload, Tracking

Row = tuple[Manifest, Tracking]

JOB_CHANGED = "JobChanged"
JOB_SUSPENDED = "JobSuspended"
JOB_DELETED = "JobDeleted"
JOB_UNSUSPENDED = "JobUnsuspended"
JOB_REFUSED = "FailedToStart"

#: After these evictions the workload queues again at once: the job's owner caused them, there is nothing to wait for.
REQUEUED = (JOB_CHANGED, JOB_SUSPENDED, JOB_UNSUSPENDED)

#: What a job's workload takes from it besides its pod sets.
_FOLLOWED = ("queueName", "priorityClassRef", "maximumExecutionTimeSeconds")


def observed(facts: JobFacts) -> dict[str, object]:
    """The facts as the row keeps them: what changes with every event and nobody reads is left out."""
    kept = dataclasses.asdict(facts)
    del kept["resource_version"]
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """For jobs of one kind, by the leader of one epoch, at one moment."""

    adapter: JobAdapter
    epoch: int
    now: datetime
    priority_of: Callable[[Manifest], int]
    """The number that a `priorityClassRef` stands for."""
    policy: Policy = DEFAULT

    def enlist(self, job: Manifest, uid: str, created_at: datetime) -> Row:
        """A workload for a job that has none. Raises Invalid for a job that no workload can stand for.

        The time of creation is kept to the microsecond: arrivals within one second keep their order.
        """
        facts = self.adapter.facts(job)
        manifest = self.adapter.workload_manifest(job)
        manifest["metadata"] |= {
            "uid": uid,
            "generation": 1,
            "creationTimestamp": created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "finalizers": [IN_USE],
        }
        manifest = WORKLOAD.prepare(self._with_priority(manifest))
        tracking = tracked(
            manifest,
            Tracking(
                attempt=max(facts.attempt or 0, facts.stopped_attempt or 0),
                epoch=self.epoch,
                job=observed(facts),
                template=self.adapter.original(job) if _untouched(facts) else None,
            ),
            self.policy,
        )
        return manifest, tracking if _untouched(facts) else decide(tracking, self.epoch)

    def apply(self, job: Manifest, row: StoredWorkload) -> Row:
        """The row as its job wants it; both parts are the old ones where nothing changes."""
        facts = self.adapter.facts(job)
        tracking = dataclasses.replace(row.tracking, job=observed(facts))
        if tracking.ended:
            return row.manifest, row.tracking
        if facts.finished:
            return self._finished(row.manifest, tracking, facts)
        if tracking.state == "admitted":
            return self._admitted(job, facts, row.manifest, tracking)
        if tracking.state == "evicting":
            due = dataclasses.replace(tracking, next_sync_at=None)
            return row.manifest, due if facts.quiet else tracking
        return self._waiting(job, facts, row.manifest, tracking)

    def evict(self, row: StoredWorkload, reason: str, message: str) -> Row:
        """Make an admitted workload stop; its quota stays charged until sync has seen it stopped."""
        return self._evicted(row.manifest, row.tracking, reason, message)

    def deactivate(self, row: StoredWorkload, why: str) -> Row:
        """Take an admitted workload whose job cannot start out of line, with the reason in its status."""
        manifest = lifecycle.deactivate_now(row.manifest, JOB_REFUSED, why, self.now)
        metadata = manifest["metadata"]
        grown = {**metadata, "generation": metadata.get("generation", 1) + 1}
        manifest = {**manifest, "metadata": grown}
        return manifest, decide(self._tracked(manifest, row.tracking), self.epoch)

    def release(self, job: Manifest, row: StoredWorkload) -> Row:
        """The job of an evicted workload has stopped: the quota is free, and it waits for its turn again."""
        manifest = lifecycle.release(row.manifest, self.now)
        evicted = lifecycle.condition(status_of(manifest), "Evicted") or {}
        if evicted.get("reason") in REQUEUED:
            words = evicted["reason"], evicted.get("message", "")
            manifest = lifecycle.requeue(manifest, *words, self.now)
        facts = self.adapter.facts(job)
        manifest = self._reclaim(self._follow(job, manifest), facts)
        tracking = dataclasses.replace(
            row.tracking,
            synced_version=row.tracking.decided_version,
            job=observed(facts),
            template=self.adapter.original(job),
        )
        return manifest, self._tracked(manifest, tracking)

    def _finished(self, manifest: Manifest, tracking: Tracking, facts: JobFacts) -> Row:
        reason = "Succeeded" if facts.succeeded else "Failed"
        message = facts.message or f"The job ended: {reason}"
        ended = lifecycle.finish(manifest, reason, message, self.now)
        done = dataclasses.replace(tracking, synced_version=tracking.decided_version)
        return ended, self._tracked(ended, done)

    def _admitted(
        self, job: Manifest, facts: JobFacts, manifest: Manifest, tracking: Tracking
    ) -> Row:
        if not self.adapter.equivalent(job, manifest):
            words = "The job asks for something else than was admitted"
            return self._evicted(manifest, tracking, JOB_CHANGED, words)
        if facts.attempt == tracking.attempt:
            if not facts.suspended:
                reported = self._report(manifest, facts)
                return reported, self._tracked(reported, tracking)
            words = "The job was suspended by its owner"
            return self._evicted(manifest, tracking, JOB_SUSPENDED, words)
        settled = tracking.decided_version == tracking.synced_version
        return manifest, decide(tracking, self.epoch) if settled and runs(manifest) else tracking

    def _waiting(
        self, job: Manifest, facts: JobFacts, manifest: Manifest, tracking: Tracking
    ) -> Row:
        manifest = self._reclaim(self._follow(job, manifest), facts)
        if _untouched(facts):
            tracking = dataclasses.replace(tracking, template=self.adapter.original(job))
        elif tracking.decided_version == tracking.synced_version:
            tracking = decide(tracking, self.epoch)
        return manifest, self._tracked(manifest, tracking)

    def _report(self, manifest: Manifest, facts: JobFacts) -> Manifest:
        """What the running job says of its pods: whether all are ready, and which are done for good."""
        if self.policy.pods_ready is not None:
            manifest = pods_ready.observe(manifest, ready=facts.ready, now=self.now)
        return self._reclaim(manifest, facts)

    def _reclaim(self, manifest: Manifest, facts: JobFacts) -> Manifest:
        if not self.policy.reclaimable_pods:
            return manifest
        return lifecycle.reclaim(manifest, dict(facts.reclaimable))

    def _tracked(self, manifest: Manifest, tracking: Tracking) -> Tracking:
        return tracked(manifest, tracking, self.policy)

    def _evicted(self, manifest: Manifest, tracking: Tracking, reason: str, message: str) -> Row:
        evicted = lifecycle.evict(manifest, reason, message, self.now)
        return evicted, decide(self._tracked(evicted, tracking), self.epoch)

    def _follow(self, job: Manifest, manifest: Manifest) -> Manifest:
        """The workload with what the job asks for now; the very same one when it asked for that already."""
        wanted = self.adapter.workload_manifest(job)["spec"]
        old = spec_of(manifest)
        spec = {name: value for name, value in old.items() if name not in _FOLLOWED}
        spec |= {name: wanted[name] for name in _FOLLOWED if name in wanted}
        same = self.adapter.equivalent(job, manifest)
        if not same or _places(wanted["podSets"]) != _places(old["podSets"]):
            spec["podSets"] = wanted["podSets"]
        if spec == old:
            return manifest
        metadata = manifest["metadata"]
        grown = {**metadata, "generation": metadata.get("generation", 1) + 1}
        changed = {**manifest, "metadata": grown, "spec": spec}
        if spec.get("priorityClassRef") != old.get("priorityClassRef"):
            changed = self._with_priority(changed)
        return WORKLOAD.prepare(changed, manifest)

    def _with_priority(self, manifest: Manifest) -> Manifest:
        spec = {name: value for name, value in spec_of(manifest).items() if name != "priority"}
        if reference := spec.get("priorityClassRef"):
            spec["priority"] = self.priority_of(reference)
        return {**manifest, "spec": spec}


def _places(pod_sets: Sequence[Manifest]) -> list[list[object]]:
    """What else of its pods decides where a waiting job may go; Kueue only looks again at what its pods ask for."""
    templates = [(one["template"].get("spec") or {}, one) for one in pod_sets]
    return [
        [pod.get("nodeSelector") or {}, pod.get("affinity") or {}, one.get("topologyRequest") or {}]
        for pod, one in templates
    ]


def _untouched(facts: JobFacts) -> bool:
    """Suspended, and its template is its owner's own."""
    return facts.suspended and not facts.stopping

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
| admitted           | asks for something else      | evict; the new size queues again                    |
| evicting           | any                          | sync goes on stopping it                            |
| any but finished   | finished                     | finished, quota given back                          |

Pure: uid and time come in as arguments. Kueue's jobframework reconciler is the model; it restarts a job whose owner
suspended it and replaces the Workload of a changed one, where we keep the row, its attempts and its history.
"""

import dataclasses
from datetime import datetime

from app.core import lifecycle
from app.core.manifests import Manifest
from app.core.metadata import spec_of, stamp, status_of
from app.intake.workloads import state_of
from app.jobs.adapter import JobAdapter, JobFacts
from app.store.tracking import StoredWorkload, Tracking

JOB_CHANGED = "JobChanged"
JOB_SUSPENDED = "JobSuspended"
JOB_DELETED = "JobDeleted"

#: After these evictions the workload queues again at once: the job's owner caused them, there is nothing to wait for.
REQUEUED = (JOB_CHANGED, JOB_SUSPENDED)


def observed(facts: JobFacts) -> dict[str, object]:
    """The facts as the row keeps them: what changes with every event and nobody reads is left out."""
    kept = dataclasses.asdict(facts)
    del kept["resource_version"]
    return kept


def enlist(
    adapter: JobAdapter, job: Manifest, uid: str, now: datetime
) -> tuple[Manifest, Tracking]:
    """A workload for a job that has none."""
    facts = adapter.facts(job)
    manifest = adapter.workload_manifest(job)
    manifest["metadata"] |= {"uid": uid, "generation": 1, "creationTimestamp": stamp(now)}
    attempt = max(facts.attempt or 0, facts.stopped_attempt or 0)
    quiet = facts.suspended and not facts.stopping
    return manifest, Tracking(
        attempt=attempt,
        decided_version=0 if quiet else 1,
        job=observed(facts),
        template=adapter.original(job) if quiet else None,
    )


def repair(
    adapter: JobAdapter, job: Manifest, row: StoredWorkload, now: datetime
) -> tuple[Manifest, Tracking]:
    """The row as the job wants it; both parts are the old ones where nothing changes."""
    facts = adapter.facts(job)
    manifest, tracking = row.manifest, dataclasses.replace(row.tracking, job=observed(facts))
    if tracking.ended:
        return manifest, row.tracking
    if facts.finished:
        return _finished(manifest, tracking, facts, now)
    if tracking.state == "admitted":
        return _admitted(adapter, job, manifest, tracking, now)
    if tracking.state == "evicting":
        return manifest, tracking
    return _waiting(adapter, job, manifest, tracking)


def follow(adapter: JobAdapter, job: Manifest, manifest: Manifest) -> Manifest:
    """The workload with what the job asks for now; the very same one when it asked for that already."""
    wanted = adapter.workload_manifest(job)
    spec = dict(spec_of(manifest))
    spec |= {
        name: wanted["spec"][name]
        for name in ("queueName", "priorityClassRef")
        if name in wanted["spec"]
    }
    if not adapter.equivalent(job, manifest):
        spec |= {name: value for name, value in wanted["spec"].items() if name != "active"}
    if spec == spec_of(manifest):
        return manifest
    metadata = manifest["metadata"]
    grown = {**metadata, "generation": metadata.get("generation", 1) + 1}
    return {**manifest, "metadata": grown, "spec": spec}


def _finished(
    manifest: Manifest, tracking: Tracking, facts: JobFacts, now: datetime
) -> tuple[Manifest, Tracking]:
    reason = "Succeeded" if facts.succeeded else "Failed"
    message = facts.message or f"Job finished: {reason}"
    ended = lifecycle.finish(manifest, reason, message, now)
    return ended, dataclasses.replace(
        tracking, state="finished", synced_version=tracking.decided_version, next_deadline_at=None
    )


def _admitted(
    adapter: JobAdapter, job: Manifest, manifest: Manifest, tracking: Tracking, now: datetime
) -> tuple[Manifest, Tracking]:
    facts = adapter.facts(job)
    if not adapter.equivalent(job, manifest):
        return evict(manifest, tracking, JOB_CHANGED, "The job asks for something else now", now)
    if not facts.suspended:
        return manifest, tracking
    if facts.attempt == tracking.attempt:
        return evict(manifest, tracking, JOB_SUSPENDED, "The job was suspended by its owner", now)
    if tracking.decided_version == tracking.synced_version and lifecycle.is_true(
        status_of(manifest), "Admitted"
    ):
        return manifest, decide(tracking)
    return manifest, tracking


def _waiting(
    adapter: JobAdapter, job: Manifest, manifest: Manifest, tracking: Tracking
) -> tuple[Manifest, Tracking]:
    facts = adapter.facts(job)
    manifest = follow(adapter, job, manifest)
    settled = facts.suspended and not facts.stopping
    if settled:
        tracking = dataclasses.replace(tracking, template=adapter.original(job))
    elif tracking.decided_version == tracking.synced_version:
        tracking = decide(tracking)
    return manifest, tracking


def evict(
    manifest: Manifest, tracking: Tracking, reason: str, message: str, now: datetime
) -> tuple[Manifest, Tracking]:
    """Make an admitted workload stop; its quota stays charged until sync has seen it stopped."""
    evicted = lifecycle.evict(manifest, reason, message, now)
    return evicted, decide(dataclasses.replace(tracking, state=state_of(evicted)))


def decide(tracking: Tracking) -> Tracking:
    """Put the key into the work queue, at once and with a clean slate."""
    return dataclasses.replace(
        tracking,
        decided_version=tracking.decided_version + 1,
        next_sync_at=None,
        sync_failures=0,
    )


def release(
    adapter: JobAdapter | None, job: Manifest | None, row: StoredWorkload, now: datetime
) -> tuple[Manifest, Tracking]:
    """The job of an evicted workload has stopped: the quota is free, and the workload waits for its turn again."""
    manifest = lifecycle.release(row.manifest, now)
    evicted = lifecycle.condition(status_of(manifest), "Evicted") or {}
    if evicted.get("reason") in REQUEUED:
        manifest = lifecycle.requeue(manifest, evicted["reason"], evicted.get("message", ""), now)
    tracking = row.tracking
    if adapter is not None and job is not None:
        manifest = follow(adapter, job, manifest)
        tracking = dataclasses.replace(
            tracking, job=observed(adapter.facts(job)), template=adapter.original(job)
        )
    return manifest, dataclasses.replace(
        tracking, state=state_of(manifest), synced_version=tracking.decided_version
    )

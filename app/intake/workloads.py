"""What does a workload's manifest, by itself, say about its row?

The row's `state` and `next_deadline_at` are projections of spec and status, so the two can never disagree: whoever puts
a workload computes them here. Charged are exactly the workloads whose status holds an admission.
"""

import dataclasses
from datetime import datetime, timedelta

from app.core.lifecycle import condition, is_true
from app.core.manifests import Manifest
from app.core.metadata import moment, spec_of, status_of
from app.store.tracking import State, Tracking


def state_of(manifest: Manifest) -> State:
    status = status_of(manifest)
    if is_true(status, "Finished"):
        return "finished"
    if status.get("admission"):
        return "evicting" if is_true(status, "Evicted") else "admitted"
    return "pending" if spec_of(manifest).get("active", True) else "inactive"


def runs(manifest: Manifest) -> bool:
    """Whether its job should run: admitted, not evicted, not at its end."""
    status = status_of(manifest)
    return is_true(status, "Admitted") and state_of(manifest) == "admitted"


def deadline_of(manifest: Manifest) -> datetime | None:
    """When to look at it again though nothing happens: its back-off ends, or its time to run is over."""
    status, state = status_of(manifest), state_of(manifest)
    if state == "pending":
        requeue_at = (status.get("requeueState") or {}).get("requeueAt")
        return moment(requeue_at) if requeue_at else None
    most = spec_of(manifest).get("maximumExecutionTimeSeconds")
    admitted = condition(status, "Admitted")
    if state != "admitted" or most is None or admitted is None or admitted["status"] != "True":
        return None
    spent = int(status.get("accumulatedPastExecutionTimeSeconds") or 0)
    return moment(admitted["lastTransitionTime"]) + timedelta(seconds=most - spent)


def tracked(manifest: Manifest, tracking: Tracking) -> Tracking:
    """`tracking` with what `manifest` says of it; what is gone stays gone."""
    if tracking.state == "gone":
        return tracking
    return dataclasses.replace(
        tracking, state=state_of(manifest), next_deadline_at=deadline_of(manifest)
    )


def decide(tracking: Tracking, epoch: int) -> Tracking:
    """Put the key into the work queue, at once and with a clean slate."""
    return dataclasses.replace(
        tracking,
        epoch=max(tracking.epoch, epoch),
        decided_version=tracking.decided_version + 1,
        next_sync_at=None,
        sync_failures=0,
    )

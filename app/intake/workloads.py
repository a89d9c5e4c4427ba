"""What does a workload's manifest, by itself, say about its row?

The row's `state` and `next_deadline_at` are projections of spec and status, so the two can never disagree: whoever puts
a workload computes them here. Charged are exactly the workloads whose status holds an admission.
"""

import dataclasses

from app.core.deadlines import next_look_at
from app.core.lifecycle import is_true
from app.core.manifests import Manifest
from app.core.metadata import spec_of, status_of
from app.core.policy import Policy
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


def tracked(manifest: Manifest, tracking: Tracking, policy: Policy) -> Tracking:
    """`tracking` with what `manifest` says of it; what is gone stays gone."""
    if tracking.state == "gone":
        return tracking
    return dataclasses.replace(
        tracking, state=state_of(manifest), next_deadline_at=next_look_at(manifest, policy)
    )


def must_act(before: Manifest, after: Manifest) -> bool:
    """Whether the job has to be touched: it begins or ceases to run, or is to be seen stopped for its quota."""
    is_leaving = state_of(after) == "evicting" and state_of(before) != "evicting"
    return is_leaving or runs(before) != runs(after)


def decide(tracking: Tracking, epoch: int) -> Tracking:
    """Put the key into the work queue, at once and with a clean slate."""
    return dataclasses.replace(
        tracking,
        epoch=max(tracking.epoch, epoch),
        decided_version=tracking.decided_version + 1,
        next_sync_at=None,
        sync_failures=0,
    )

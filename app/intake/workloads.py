"""Which state is a workload in, by its manifest alone?

The row's `state` column is a projection of spec and status, so the two can never disagree: whoever puts a workload
computes it here. Charged are exactly the workloads whose status holds an admission.
"""

import dataclasses

from app.core.lifecycle import is_true
from app.core.manifests import Manifest
from app.core.metadata import spec_of, status_of
from app.store.tracking import State, Tracking


def state_of(manifest: Manifest) -> State:
    status = status_of(manifest)
    if is_true(status, "Finished"):
        return "finished"
    if status.get("admission"):
        return "evicting" if is_true(status, "Evicted") else "admitted"
    return "pending" if spec_of(manifest).get("active", True) else "inactive"


def tracked(manifest: Manifest, tracking: Tracking) -> Tracking:
    """`tracking` with the state that `manifest` is in; what is gone stays gone."""
    state = state_of(manifest)
    return (
        tracking
        if tracking.state in (state, "gone")
        else dataclasses.replace(tracking, state=state)
    )

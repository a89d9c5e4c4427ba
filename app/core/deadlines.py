"""When must a workload be looked at again although nothing happens?

One function answers for all of its clocks: the end of its back-off, the patience with pods that are not ready, its
maximum execution time, and how long it is kept after its end. The answer is a function of manifest and policy alone and
is kept in its row, so no timer lives in memory and a restart, or a change of policy, loses none.
"""

from datetime import datetime, timedelta

from app.core import pods_ready
from app.core.metadata import Manifest, condition, is_deleting, is_true, moment, spec_of, status_of
from app.core.policy import Policy, Retention

_BY_US = "DeactivatedDueTo"


def next_look_at(manifest: Manifest, policy: Policy) -> datetime | None:
    """The earliest of its deadlines; None while only events can change anything."""
    status = status_of(manifest)
    if is_true(status, "Finished") or spec_of(manifest).get("active", True) is False:
        return expires_at(manifest, policy.retention)
    if not status.get("admission"):
        return _requeue_at(status)
    if is_true(status, "Evicted"):
        return None
    found = [must_end_at(manifest)]
    if policy.pods_ready is not None:
        found.append(pods_ready.due_at(manifest, policy.pods_ready))
    return min((at for at in found if at is not None), default=None)


def must_end_at(manifest: Manifest) -> datetime | None:
    """When an admitted workload has run for as long as it may, earlier attempts included."""
    status = status_of(manifest)
    most = spec_of(manifest).get("maximumExecutionTimeSeconds")
    admitted = condition(status, "Admitted")
    if most is None or admitted is None or admitted["status"] != "True":
        return None
    spent = int(status.get("accumulatedPastExecutionTimeSeconds") or 0)
    return moment(admitted["lastTransitionTime"]) + timedelta(seconds=most - spent)


def expires_at(manifest: Manifest, rules: Retention) -> datetime | None:
    """When a workload that came to its end is cleared away: finished, or deactivated by us and stopped."""
    status = status_of(manifest)
    finished = condition(status, "Finished") or {}
    if finished.get("status") == "True":
        is_kept = rules.after_finished is None or is_deleting(manifest)
        return None if is_kept else _after(finished, rules.after_finished)
    evicted = condition(status, "Evicted") or {}
    by_us = evicted.get("status") == "True" and str(evicted.get("reason")).startswith(_BY_US)
    is_off = spec_of(manifest).get("active", True) is False and not status.get("admission")
    return _after(evicted, rules.after_deactivated) if by_us and is_off else None


def _after(met: Manifest, wait: timedelta | None) -> datetime | None:
    return None if wait is None else moment(met["lastTransitionTime"]) + wait


def _requeue_at(status: Manifest) -> datetime | None:
    requeue_at = (status.get("requeueState") or {}).get("requeueAt")
    return moment(requeue_at) if requeue_at else None

"""Are all pods of an admitted workload ready, and what follows if they are not in time (KEP-349)?

The condition PodsReady tells four things apart: it never was ready (WaitForStart), it is (Started), it no longer is
(WaitForRecovery), it is again (Recovered). From admission it may take `timeout` to get ready, from the loss of
readiness `recovery_timeout`; then it is evicted and queues again after a delay that doubles each time, or is
deactivated when it was evicted too often. That is decided when the time is over, in one step, so no later requeue can
overtake it. Reasons and messages are Kueue's, verbatim.

Delays of workloads evicted together are spread by up to a ten-thousandth, as in Kueue; here the spread is a function
of the workload's uid and the number of the eviction, so the same history gives the same times.
"""

from datetime import datetime, timedelta
from hashlib import sha256

from app.core.conditions import set_condition
from app.core.evictions import back_off, deactivate_now, evict
from app.core.lifecycle import NOT_READY
from app.core.metadata import (
    Manifest,
    condition,
    is_true,
    moment,
    name_of,
    namespace_of,
    stamp,
    status_of,
)
from app.core.policy import PodsReady, Requeuing

CONDITION = "PodsReady"
WAIT_FOR_START, STARTED = "WaitForStart", "Started"
WAIT_FOR_RECOVERY, RECOVERED = "WaitForRecovery", "Recovered"
TIMED_OUT = "PodsReadyTimeout"

_WORDS = {
    WAIT_FOR_START: NOT_READY,
    WAIT_FOR_RECOVERY: "At least one pod has failed, waiting for recovery",
    STARTED: "All pods reached readiness and the workload is running",
    RECOVERED: "All pods reached readiness and the workload is running",
}
_SPREAD = 10_000  # a delay grows by less than one part in so many
_MOST_DOUBLINGS = 40


def observe(manifest: Manifest, *, ready: bool, now: datetime) -> Manifest:
    """What a running job says about its pods."""
    known = condition(status_of(manifest), CONDITION)
    reason = _reason(known, ready=ready)
    return set_condition(
        manifest, CONDITION, status=ready, reason=reason, message=_WORDS[reason], now=now
    )


def due_at(manifest: Manifest, rules: PodsReady) -> datetime | None:
    """When the patience with an admitted workload ends; None while there is nothing to wait for."""
    status = status_of(manifest)
    admitted = condition(status, "Admitted")
    if admitted is None or admitted["status"] != "True" or is_true(status, "Evicted"):
        return None
    known = condition(status, CONDITION)
    if known is None or (known["status"] != "True" and known["reason"] != WAIT_FOR_RECOVERY):
        return moment(admitted["lastTransitionTime"]) + rules.timeout
    if known["status"] == "True" or rules.recovery_timeout is None:
        return None
    return moment(known["lastTransitionTime"]) + rules.recovery_timeout


def expire(manifest: Manifest, rules: PodsReady, now: datetime) -> Manifest:
    """Its time is over: evict it with a later try in view, or deactivate it when there were too many."""
    requeuing = rules.requeuing
    state = status_of(manifest).get("requeueState") or {}
    count = int(state.get("count") or 0) + 1
    if requeuing.limit is not None and count > requeuing.limit:
        words = "exceeding the maximum number of re-queuing retries"
        return deactivate_now(manifest, "RequeuingLimitExceeded", words, now)
    known = condition(status_of(manifest), CONDITION) or {}
    recovering = known.get("reason") == WAIT_FOR_RECOVERY
    again_at = now + delay(requeuing, count, str(manifest["metadata"].get("uid", "")))
    manifest = back_off(manifest, count=count, until=stamp(again_at))
    words = f"Exceeded the PodsReady timeout {namespace_of(manifest)}/{name_of(manifest)}"
    cause = WAIT_FOR_RECOVERY if recovering else WAIT_FOR_START
    return evict(manifest, TIMED_OUT, words, now, cause=cause)


def delay(rules: Requeuing, count: int, uid: str) -> timedelta:
    """How long to stay out of line after the eviction of that number, counted from one."""
    doublings = min(count - 1, _MOST_DOUBLINGS)
    longest = rules.longest_delay_s * 10**6
    micros = min(rules.first_delay_s * 10**6 << doublings, longest)
    dice = int.from_bytes(sha256(f"{uid}/{count}".encode()).digest()[:4], "big")
    return timedelta(microseconds=min(micros + micros * dice // (_SPREAD << 32), longest))


def _reason(known: Manifest | None, *, ready: bool) -> str:
    before = (known or {}).get("reason")
    if ready:
        return RECOVERED if before in (WAIT_FOR_RECOVERY, RECOVERED) else STARTED
    was_ready = known is not None and known["status"] == "True"
    return WAIT_FOR_RECOVERY if was_ready or before == WAIT_FOR_RECOVERY else WAIT_FOR_START

"""Which admission checks must a workload pass, and what follows from what they say (KEP-993)?

Two phases: quota is reserved first, the workload is admitted when all of its checks say Ready. Before a reservation
only checks that are for every flavor of the queue are listed; with one, those that are for a flavor it was given.
Retry evicts and starts over, not before the date that the checks ask for; Rejected deactivates, also what runs already.

A workload that is admitted keeps the list it was admitted with. Kueue syncs that one, too, and so stops running jobs
when somebody adds a check to their queue; a check is asked before a start, and nobody can have passed it by then.
"""

from datetime import datetime, timedelta

from app.core.conditions import with_status
from app.core.evictions import back_off, deactivate_now, evict, new_check
from app.core.metadata import Manifest, is_true, moment, stamp, status_of
from app.core.model import ClusterQueue
from app.core.objects import flavors_of

EVICTED = "AdmissionCheck"

_EVICTION_WORDS = "At least one admission check is false"


def required(queue: ClusterQueue, flavors: frozenset[str] | None) -> tuple[str, ...]:
    """The checks of a workload that was given these flavors; None: it holds no quota yet."""
    if flavors is None:
        flavors_of_queue = frozenset(flavors_of(queue))
        return tuple(
            rule.name
            for rule in queue.checks
            if not rule.flavors or rule.flavors >= flavors_of_queue
        )
    return tuple(
        rule.name
        for rule in queue.checks
        if not rule.flavors or not rule.flavors.isdisjoint(flavors)
    )


def sync(manifest: Manifest, queue: ClusterQueue, now: datetime) -> Manifest:
    """List what is required, as Pending where it is new; what others said of the rest stays."""
    status = status_of(manifest)
    if is_true(status, "Admitted"):
        return manifest
    known = {check["name"]: check for check in status.get("admissionChecks") or ()}
    names = required(queue, _flavors(status))
    if names == tuple(known):
        return manifest
    return with_status(
        manifest,
        admissionChecks=[known.get(name) or new_check(name, now) for name in names] or None,
    )


def answer(manifest: Manifest, now: datetime) -> Manifest:
    """Evict or deactivate a workload that a check sends back; a refusal weighs more than a retry."""
    checks = status_of(manifest).get("admissionChecks") or ()
    rejected = [check["name"] for check in checks if check.get("state") == "Rejected"]
    if rejected:
        words = f"Admission check(s): {','.join(rejected)}, were rejected"
        return deactivate_now(manifest, EVICTED, words, now)
    retried = [check for check in checks if check.get("state") == "Retry"]
    if not retried:
        return manifest
    dates = [_again_at(check) for check in retried if check.get("requeueAfterSeconds")]
    if dates:
        manifest = back_off(manifest, until=stamp(max(dates)))
    return evict(manifest, EVICTED, _EVICTION_WORDS, now)


def _again_at(check: Manifest) -> datetime:
    said_at = moment(check["lastTransitionTime"])
    return said_at + timedelta(seconds=int(check["requeueAfterSeconds"]))


def _flavors(status: Manifest) -> frozenset[str] | None:
    admission = status.get("admission")
    if not admission:
        return None
    return frozenset(
        flavor
        for one in admission.get("podSetAssignments") or ()
        for flavor in (one.get("flavors") or {}).values()
    )

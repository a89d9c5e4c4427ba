"""What becomes of an object that is to be deleted: gone at once, or kept for a while with a deletion time?

From Kubernetes' registry and its pod and namespace strategies: finalizers keep an object; a bound pod that has not
ended is kept for its grace period, until the kubelet lets go of it; a namespace is kept until it is empty; orphaning
and foreground deletion are finalizers that the garbage collector removes. Pure.
"""

from datetime import datetime, timedelta
from typing import Any

from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from app.sandbox.batch.facts import ended
from app.sandbox.requests import DeleteOptions
from app.sandbox.times import stamp

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_NAMESPACE_FINALIZER = "kubernetes"
_KEY_POD = ("", "pods")
_KEY_NAMESPACE = ("", "namespaces")
_KEY_JOB = ("batch", "jobs")


def deleted(
    kind: Kind, current: Manifest, options: DeleteOptions, now: datetime
) -> Manifest | None:
    """Return the object as a deletion leaves it; None if it goes at once."""
    metadata = dict(current["metadata"])
    finalizers = _finalizers(kind, current, options)
    grace = _grace_period_s(kind, current, options)
    metadata["finalizers"] = finalizers
    if not finalizers:
        del metadata["finalizers"]
        if not grace and not namespace_is_held(kind, current):
            return None
    before = metadata.get("deletionGracePeriodSeconds")
    if kind.key == _KEY_NAMESPACE:
        metadata.setdefault("deletionTimestamp", stamp(now))
    elif "deletionTimestamp" not in metadata or (before is not None and grace < before):
        if "deletionTimestamp" not in metadata:
            metadata["generation"] = metadata.get("generation", 0) + 1
        metadata["deletionTimestamp"] = stamp(now + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
    if metadata == current["metadata"]:
        return current
    return _terminating(kind, {**current, "metadata": metadata})


def released(kind: Kind, current: Manifest) -> Manifest | None:
    """Return a deleted object that has just lost its last finalizer: a pod that runs and a namespace stay."""
    still_runs = (
        kind.key == _KEY_POD
        and not ended(current)
        and bool(current["metadata"].get("deletionGracePeriodSeconds"))
    )
    if not still_runs and not namespace_is_held(kind, current):
        return None
    metadata = {key: value for key, value in current["metadata"].items() if key != "finalizers"}
    return {**current, "metadata": metadata}


def namespace_is_held(kind: Kind, current: Manifest) -> bool:
    if kind.key != _KEY_NAMESPACE:
        return False
    return _NAMESPACE_FINALIZER in ((current.get("spec") or {}).get("finalizers") or ())


def _finalizers(kind: Kind, current: Manifest, options: DeleteOptions) -> list[str]:
    kept = [
        one
        for one in current["metadata"].get("finalizers") or ()
        if options.propagation is None or one not in (ORPHAN, FOREGROUND)
    ]
    decided = any(one in (ORPHAN, FOREGROUND) for one in kept)
    default = "Orphan" if kind.key == _KEY_JOB and not decided else "Background"
    match options.propagation or default:
        case "Orphan":
            return [*kept, ORPHAN]
        case "Foreground":
            return [*kept, FOREGROUND]
        case _:
            return kept


def _grace_period_s(kind: Kind, current: Manifest, options: DeleteOptions) -> int:
    if kind.key != _KEY_POD or not current["spec"].get("nodeName") or ended(current):
        return 0
    wanted = options.grace_period_s
    if wanted is None:
        wanted = current["spec"].get("terminationGracePeriodSeconds", 30)
    return max(wanted, 0)


def _terminating(kind: Kind, manifest: Manifest) -> Manifest:
    if kind.key != _KEY_NAMESPACE:
        return manifest
    status: dict[str, Any] = {**(manifest.get("status") or {}), "phase": "Terminating"}
    return {**manifest, "status": status}

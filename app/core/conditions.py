"""How is one condition, or one field, of a status replaced?

The returned manifest has a new status and shares the rest; where nothing differs it is the very same object, so that
"nothing to write" is told by identity. `lastTransitionTime` moves only when a condition's status does. What has
finished stays as it was then, whatever is still told about it.
"""

from datetime import datetime
from typing import Any

from app.core.metadata import Manifest, condition, is_true, stamp, status_of

_MESSAGE_LIMIT = 32768  # bytes


def set_condition(
    manifest: Manifest, kind: str, *, status: bool, reason: str, message: str, now: datetime
) -> Manifest:
    """Set one condition; the time of its last transition stays when its status does."""
    if has_ended(manifest):
        return manifest
    old = condition(status_of(manifest), kind) or {}
    word = "True" if status else "False"
    new: Manifest = {
        "type": kind,
        "status": word,
        "reason": reason,
        "message": _cut(message),
        "lastTransitionTime": old["lastTransitionTime"]
        if old.get("status") == word
        else stamp(now),
    }
    generation = manifest["metadata"].get("generation")
    if generation is not None:
        new["observedGeneration"] = generation
    if new == old:
        return manifest
    conditions = list(status_of(manifest).get("conditions") or ())
    if old:
        conditions[conditions.index(old)] = new
    else:
        conditions.append(new)
    return with_status(manifest, conditions=conditions)


def with_status(manifest: Manifest, **changes: Any) -> Manifest:
    """Replace status fields; None removes one. The same object comes back when nothing differs."""
    if has_ended(manifest):
        return manifest
    old = status_of(manifest)
    new = {key: value for key, value in {**old, **changes}.items() if value is not None}
    return manifest if new == old else {**manifest, "status": new}


def has_ended(manifest: Manifest) -> bool:
    """Finished is the last thing that happens to a workload."""
    return is_true(status_of(manifest), "Finished")


def _cut(message: str) -> str:
    """As much as a condition may say, without half a letter at its end."""
    if len(message) * 4 <= _MESSAGE_LIMIT:
        return message
    return message.encode(errors="replace")[:_MESSAGE_LIMIT].decode(errors="ignore")

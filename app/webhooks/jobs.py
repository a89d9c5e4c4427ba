"""What happens to a job at the door: it is suspended, given its namespace's default queue, or refused.

Pure: a review and two facts go in, operations or faults come out; nothing is stored here, so a dry run and a forged
call are harmless. Kueue's rules (common defaulting and validation of its job webhooks): a queue name must be a name,
may not change while the job runs, and may not be taken away from a running job.
"""

import re

from app.core.manifests import Manifest
from app.errors import FieldError
from app.jobs import labels
from app.jobs.adapter import JobAdapter
from app.jobs.identity import label, queue_name
from app.webhooks.review import CHANGING, Operation, Review, pointer

DEFAULT_QUEUE = "default"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUEUE_PATH = f"metadata.labels[{labels.QUEUE_NAME}]"


def defaults(review: Review, adapter: JobAdapter, *, default_queue: bool) -> list[Operation]:
    """What to add to a job that is being created; `default_queue`: its namespace has a LocalQueue of that name."""
    job = review.object
    if review.operation != "CREATE" or review.kind != adapter.kind.kind:
        return []
    operations: list[Operation] = []
    if not queue_name(job):
        if not default_queue or label(job, labels.QUEUE_NAME) is not None:
            return []
        operations += _set_queue(job)
    if not _suspended(job, adapter):
        operations.append({"op": "add", "path": pointer(*adapter.suspend_path), "value": True})
    return operations


def faults(review: Review, adapter: JobAdapter) -> list[FieldError]:
    """Why this job, or this change of one, is refused; in the order of the manifest."""
    if review.operation not in CHANGING:
        return []
    name = label(review.object, labels.QUEUE_NAME)
    found: list[FieldError] = []
    if name and not _is_name(name):
        found.append(
            FieldError(
                _QUEUE_PATH,
                f"{name!r} is no name of a LocalQueue: lower-case letters, digits, '-' and '.', at most 253",
            )
        )
    if review.operation == "UPDATE" and review.old is not None:
        found += _change_faults(review.old, review.object, adapter)
    if review.operation == "CREATE" and name:
        found += _limit_faults(review.object)
    return found


def _change_faults(old: Manifest, new: Manifest, adapter: JobAdapter) -> list[FieldError]:
    before, after = queue_name(old), queue_name(new)
    running = not _suspended(old, adapter) and not _suspended(new, adapter)
    if not before or before == after or not running:
        return []
    return [
        FieldError(
            _QUEUE_PATH,
            f"cannot change from {before!r} to {after!r} while the job runs; suspend it first",
            "FieldValueForbidden",
        )
    ]


def _limit_faults(job: Manifest) -> list[FieldError]:
    limit = label(job, labels.MAX_EXEC_TIME)
    if limit is None or (limit.isascii() and limit.isdigit() and 0 < int(limit[:12]) < 2**31):
        return []
    path = f"metadata.labels[{labels.MAX_EXEC_TIME}]"
    return [FieldError(path, f"{limit!r} is no number of seconds above 0")]


def _set_queue(job: Manifest) -> list[Operation]:
    if not job["metadata"].get("labels"):
        value = {labels.QUEUE_NAME: DEFAULT_QUEUE}
        return [{"op": "add", "path": "/metadata/labels", "value": value}]
    path = pointer("metadata", "labels", labels.QUEUE_NAME)
    return [{"op": "add", "path": path, "value": DEFAULT_QUEUE}]


def _suspended(job: Manifest, adapter: JobAdapter) -> bool:
    found: object = job
    for step in adapter.suspend_path:
        found = found.get(step) if isinstance(found, dict) else None
    return found is True


def _is_name(text: str) -> bool:
    return len(text) <= 253 and _NAME.fullmatch(text) is not None

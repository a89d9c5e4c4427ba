"""What does a job say about the decision it is carrying out, and how is that written?

Four annotations: the attempt that unsuspended it, the leader's epoch, the attempt stopped last, and the sign that a
stop is under way. They are believed only next to the uid of the very object that carries them: a manifest copied with
``kubectl get -o yaml`` into a new Job brings the old Job's marks along, and must not pass for started because of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.manifests import Manifest
from app.errors import Conflict
from app.jobs import labels
from app.jobs.identity import annotation, number
from app.jobs.patches import preconditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    attempt: int | None = None
    epoch: int | None = None
    stopped_attempt: int | None = None
    stopping: bool = False


def read(manifest: Manifest) -> Marks:
    if annotation(manifest, labels.MARKED_UID) != manifest["metadata"]["uid"]:
        return Marks()
    return Marks(
        attempt=number(annotation(manifest, labels.ATTEMPT)),
        epoch=number(annotation(manifest, labels.EPOCH)),
        stopped_attempt=number(annotation(manifest, labels.STOP)),
        stopping=annotation(manifest, labels.STOPPING) is not None,
    )


def fence(manifest: Manifest, attempt: int, epoch: int) -> None:
    """Refuse to write over a later decision, or over any decision of a later leader."""
    written = read(manifest)
    if (written.epoch or 0) > epoch:
        raise Conflict(
            f"A later leader has written this job: epoch {written.epoch}, ours is {epoch}."
        )
    latest = max(written.attempt or 0, written.stopped_attempt or 0)
    if latest > attempt:
        raise Conflict(f"The job carries attempt {latest}, later than attempt {attempt}.")


def started(attempt: int, epoch: int) -> dict[str, str | None]:
    return {labels.ATTEMPT: str(attempt), labels.EPOCH: str(epoch), labels.STOPPING: None}


def stopping(attempt: int, epoch: int) -> dict[str, str | None]:
    return {**stopped(attempt, epoch), labels.STOPPING: str(attempt)}


def stopped(attempt: int, epoch: int) -> dict[str, str | None]:
    return {labels.STOP: str(attempt), labels.EPOCH: str(epoch), labels.STOPPING: None}


def body(manifest: Manifest, marks: Mapping[str, str | None], spec: Manifest) -> Manifest:
    """A merge patch of marks and spec that only this version of this object accepts."""
    metadata = preconditions(manifest)
    metadata["annotations"] = {labels.MARKED_UID: metadata["uid"], **marks}
    return {"metadata": metadata, "spec": spec} if spec else {"metadata": metadata}

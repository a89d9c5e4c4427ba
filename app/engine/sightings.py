"""What did the watch last show of a job? Spares the read that would come before most writes.

Each sighting is given out once: it is as old as the watch, so the write that is based on it carries its resourceVersion
and may be refused, and the next try must look at the live job. Only the newest `LIMIT` are kept; what is missing is
read from the cluster, so nothing depends on this memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.core.manifests import Manifest

LIMIT = 2000


@dataclass(slots=True)
class Sightings:
    """By the uid of the job."""

    _seen: dict[str, Manifest] = field(default_factory=dict)

    def note(self, jobs: Iterable[Manifest]) -> None:
        for job in jobs:
            uid = job["metadata"]["uid"]
            self._seen.pop(uid, None)
            self._seen[uid] = job
        while len(self._seen) > LIMIT:
            del self._seen[next(iter(self._seen))]

    def forget(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._seen.pop(uid, None)

    def take(self, uid: str) -> Manifest | None:
        return self._seen.pop(uid, None)

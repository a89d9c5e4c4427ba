"""Which words does a job's owner get to read about a workload? The texts, apart from how they are sent."""

from dataclasses import dataclass
from datetime import datetime

from app.core.manifests import Manifest
from app.engine.events import JobRef, Recorder


@dataclass(frozen=True, slots=True)
class Notices:
    recorder: Recorder

    def waiting(self, workload: Manifest, reason: str, why: str, now: datetime) -> None:
        job = owner_of(workload)
        if job is not None:
            self.recorder.say(job, reason, why, now, warning=True)

    def started(self, job: Manifest, cluster_queue: str, now: datetime) -> None:
        words = f"Admitted by clusterQueue {cluster_queue}"
        self.recorder.say(JobRef.of(job), "Started", words, now)

    def stopped(self, job: Manifest, why: str, now: datetime) -> None:
        self.recorder.say(JobRef.of(job), "Stopped", why or "The workload is not admitted", now)

    def cleared_away(self, job: Manifest, workload: str, now: datetime) -> None:
        words = f"Deleted after its workload {workload} had been deactivated for long enough"
        self.recorder.say(JobRef.of(job), "Deleted", words, now)

    def refused(self, job: Manifest, reason: str, why: str, now: datetime) -> None:
        self.recorder.say(JobRef.of(job), reason, why, now, warning=True)


def owner_of(workload: Manifest) -> JobRef | None:
    metadata = workload["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return JobRef(
                api_version=owner["apiVersion"],
                kind=owner["kind"],
                namespace=metadata["namespace"],
                name=owner["name"],
                uid=owner["uid"],
            )
    return None

"""What does the rest of Sluice need to know about a kind of job, and what can it ask to have done to one?

An adapter is pure: a manifest as the cluster shows it goes in, facts or the next write come out. Starting and stopping
are *steps*: whoever drives them reads the live object, asks for the next step, writes it, and comes back with what the
cluster answered, until the step says it is done. So a crash between two writes loses nothing: the job itself tells how
far it has come, by the annotations named in `labels` (reliability rules CP-04 to CP-13).

A job counts as stopped when the attempt is marked, its controller has acknowledged the suspension, no pod is active or
terminating, and the template is the user's own again. Only then may its quota be given to others.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from app.core.manifests import Manifest
from app.jobs import workloads
from app.jobs.identity import JobKind
from app.jobs.patches import Patch
from app.jobs.podsets import PodSetStart


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What the cluster says about one job, in the words all kinds share; plain values, fit for a JSON column."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    queue: str
    deleting: bool
    suspended: bool
    quiet: bool
    """Suspended, acknowledged by the job's controller, and no pod active or terminating."""
    active: int
    ready: bool
    finished: bool
    succeeded: bool
    message: str
    attempt: int | None
    epoch: int | None
    stopping: bool
    """A stop has begun and the template is not the user's own yet."""
    stopped_attempt: int | None
    """The attempt that was stopped, or is being stopped, last."""
    reclaimable: tuple[tuple[str, int], ...]
    """Pods that will never be needed again, by pod set: (name, count)."""
    spec_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartInfo:
    attempt: int
    epoch: int
    pod_sets: tuple[PodSetStart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopInfo:
    """`original` is what `JobAdapter.original` gave before the start, or None if we never started the job."""

    attempt: int
    epoch: int
    original: Manifest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopStep:
    """A write to do now; or, without one, either `done` or waiting for the cluster to say more."""

    patch: Patch | None = None
    done: bool = False


class JobAdapter(ABC):
    """One kind of job. Everything except the two shared methods at the end differs from kind to kind."""

    kind: ClassVar[JobKind]
    suspend_path: ClassVar[tuple[str, ...]] = ("spec", "suspend")

    @abstractmethod
    def facts(self, manifest: Manifest) -> JobFacts: ...

    @abstractmethod
    def pod_sets(self, manifest: Manifest) -> list[Manifest]:
        """The pod sets as ``Workload.spec.podSets`` holds them."""

    @abstractmethod
    def original(self, manifest: Manifest) -> Manifest:
        """The fields that a start may change, as they are now; taken and kept before the start is written."""

    @abstractmethod
    def start_patch(self, manifest: Manifest, start: StartInfo) -> Patch:
        """The next write toward running. Call again with the answer while the patch is not `final`.

        Raises CannotStart when job and admission contradict each other for good, and Conflict when the job no longer
        asks for what was admitted, so that it must be queued again with its new size.
        """

    @abstractmethod
    def pod_selector(self, uid: str) -> str:
        """The label selector that finds the pods of the job with this uid, also when the job is gone."""

    @abstractmethod
    def stop_step(self, manifest: Manifest, stop: StopInfo) -> StopStep: ...

    def workload_manifest(self, manifest: Manifest) -> Manifest:
        return workloads.workload_manifest(self.kind, manifest, self.pod_sets(manifest))

    def equivalent(self, manifest: Manifest, workload: Manifest) -> bool:
        """Whether the Workload still says what the job says."""
        return workloads.equivalent(
            manifest,
            self.pod_sets(manifest),
            workload,
            suspended=self.facts(manifest).suspended,
        )

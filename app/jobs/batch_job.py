"""How is a batch/v1 Job read, started and stopped?

Size: min(parallelism, completions), an absent parallelism being 1. Finished: condition Complete or Failed. Active:
``status.active`` plus ``status.terminating``, since a terminating pod still holds its devices.

Stopping is three writes, as in Kueue: suspend and mark; clear ``status.startTime``, without which the apiserver refuses
edits of the template; restore the template and remove the marker. The last two wait until the Job's controller has
acknowledged the suspension and no pod is left, or a Job resumed soon after could mix old and new placement (Kubernetes
104714). The mark names the attempt and outlives the stop: every stop changes it, so an unsuspending write still under
way carries an outdated resourceVersion and cannot land afterwards.

While a Job is suspended without a startTime, the apiserver lets the template's labels, annotations, node selector,
affinity, tolerations and scheduling gates change; parallelism may change at any time.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from app.core.manifests import Manifest
from app.errors import Conflict
from app.jobs import labels, marks, workloads
from app.jobs.adapter import JobAdapter, JobFacts, StartInfo, StopInfo, StopStep
from app.jobs.identity import JobKind, annotation, number, queue_name
from app.jobs.patches import Patch, difference, preconditions, project
from app.jobs.podsets import PodSetShape, PodSetStart, injection, pod_set

POD_SET = "main"

_TEMPLATE_PATHS = (
    ("spec", "template", "metadata", "labels"),
    ("spec", "template", "metadata", "annotations"),
    ("spec", "template", "spec", "nodeSelector"),
    ("spec", "template", "spec", "tolerations"),
    ("spec", "template", "spec", "schedulingGates"),
)
_SIZE_PATHS = (("spec", "parallelism"), ("spec", "completions"))
_SUSPEND = {"suspend": True}


class BatchJobAdapter(JobAdapter):
    kind: ClassVar = JobKind(group="batch", version="v1", kind="Job", plural="jobs")

    def facts(self, manifest: Manifest) -> JobFacts:
        metadata = manifest["metadata"]
        status: Manifest = manifest.get("status") or {}
        finish = _condition(status, "Complete") or _condition(status, "Failed")
        written = marks.read(manifest)
        return JobFacts(
            api_version=self.kind.api_version,
            kind=self.kind.kind,
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
            queue=queue_name(manifest),
            deleting="deletionTimestamp" in metadata,
            suspended=_suspended(manifest),
            quiet=_quiet(manifest),
            active=_active(status),
            ready=_ready(manifest, status),
            finished=finish is not None,
            succeeded=finish is not None and finish["type"] == "Complete",
            message=(finish or {}).get("message", ""),
            attempt=written.attempt,
            epoch=written.epoch,
            stopping=written.stopping,
            stopped_attempt=written.stopped_attempt,
            reclaimable=_reclaimable(manifest["spec"], status),
            spec_hash=workloads.spec_hash(manifest, self.pod_sets(manifest)),
        )

    def pod_sets(self, manifest: Manifest) -> list[Manifest]:
        spec: Manifest = manifest["spec"]
        shape = PodSetShape(
            name=POD_SET,
            count=_count(spec),
            min_count=_min_count(manifest),
            index_label=labels.JOB_COMPLETION_INDEX if _indexed(spec) else None,
        )
        return [pod_set(shape, spec["template"])]

    def original(self, manifest: Manifest) -> Manifest:
        partial = _min_count(manifest) is not None
        return project(manifest, _TEMPLATE_PATHS + (_SIZE_PATHS if partial else ()))

    def start_patch(self, manifest: Manifest, start: StartInfo) -> Patch:
        marks.fence(manifest, start.attempt, start.epoch)
        if _start_time(manifest):
            return _clear_start_time(manifest)
        pod_set_start = _only(start)
        spec: Manifest = {"suspend": False, **_size(manifest, pod_set_start.count)}
        template = injection(manifest["spec"]["template"], pod_set_start, "spec.template")
        if template:
            spec["template"] = template
        return Patch(body=marks.body(manifest, marks.started(start.attempt, start.epoch), spec))

    def pod_selector(self, uid: str) -> str:
        return f"{labels.CONTROLLER_UID}={uid}"

    def stop_step(self, manifest: Manifest, stop: StopInfo) -> StopStep:
        written = marks.read(manifest)
        never_started = stop.attempt == 0 and _suspended(manifest) and not written.stopping
        if _finished(manifest) or never_started:
            # No start of ours can still be under way: nothing to mark, nothing to restore.
            return StopStep(done=_active(manifest.get("status") or {}) == 0)
        marks.fence(manifest, stop.attempt, stop.epoch)
        marked = written.stopped_attempt == stop.attempt
        quiet = _quiet(manifest)
        if not _suspended(manifest) or not (marked or quiet):
            begun = marks.stopping(stop.attempt, stop.epoch)
            return StopStep(patch=Patch(body=marks.body(manifest, begun, _SUSPEND), final=False))
        if not quiet:
            return StopStep()
        if marked and not written.stopping:
            return StopStep(done=True)
        if _start_time(manifest):
            return StopStep(patch=_clear_start_time(manifest))
        return StopStep(patch=_restore(manifest, stop))


def _restore(manifest: Manifest, stop: StopInfo) -> Patch:
    """Give back what the start changed. A size it did not change may have been edited since, and stays."""
    spec: Manifest = {}
    if stop.original is not None:
        sized = "parallelism" in stop.original.get("spec", {})
        current = project(manifest, _TEMPLATE_PATHS + (_SIZE_PATHS if sized else ()))
        spec = difference(current, stop.original).get("spec", {})
    ended = marks.stopped(stop.attempt, stop.epoch)
    return Patch(body=marks.body(manifest, ended, spec))


def _clear_start_time(manifest: Manifest) -> Patch:
    body = {"metadata": preconditions(manifest), "status": {"startTime": None}}
    return Patch(body=body, subresource="status", final=False)


def _only(start: StartInfo) -> PodSetStart:
    if [entry.name for entry in start.pod_sets] != [POD_SET]:
        names = ", ".join(entry.name for entry in start.pod_sets)
        raise Conflict(f"A Job has one pod set, {POD_SET}; the admission is for: {names}.")
    return start.pod_sets[0]


def _size(manifest: Manifest, count: int) -> Manifest:
    """What to set so that `count` pods run. Fewer than asked is for Jobs that allow partial admission.

    A Job that has some of its completions behind it was admitted with what is left, and needs no telling.
    """
    spec: Manifest = manifest["spec"]
    asked, minimum = _count(spec), _min_count(manifest)
    left = asked - sum(done for _, done in _reclaimable(spec, manifest.get("status") or {}))
    if count == asked or (count == left and minimum is None):
        return {}
    if minimum is None or not min(minimum, left) <= count < asked:
        raise Conflict(f"The Job asks for {asked} pods and was admitted with {count}.")
    if annotation(manifest, labels.COMPLETIONS_EQUAL_PARALLELISM) == "true":
        return {"parallelism": count, "completions": count}
    return {"parallelism": count}


def _count(spec: Manifest) -> int:
    parallelism = spec.get("parallelism")
    completions = spec.get("completions")
    count: int = 1 if parallelism is None else parallelism
    return count if completions is None else min(count, completions)


def _min_count(manifest: Manifest) -> int | None:
    return number(annotation(manifest, labels.MIN_PARALLELISM))


def _indexed(spec: Manifest) -> bool:
    return bool(spec.get("completionMode") == "Indexed")


def _suspended(manifest: Manifest) -> bool:
    return manifest["spec"].get("suspend") is True


def _quiet(manifest: Manifest) -> bool:
    status: Manifest = manifest.get("status") or {}
    acknowledged = _condition(status, "Suspended") is not None
    return _suspended(manifest) and acknowledged and _active(status) == 0


def _finished(manifest: Manifest) -> bool:
    status: Manifest = manifest.get("status") or {}
    return bool(_condition(status, "Complete") or _condition(status, "Failed"))


def _active(status: Manifest) -> int:
    return int(status.get("active") or 0) + int(status.get("terminating") or 0)


def _start_time(manifest: Manifest) -> str | None:
    start_time: str | None = (manifest.get("status") or {}).get("startTime")
    return start_time


def _condition(status: Manifest, kind: str) -> Mapping[str, Any] | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind and condition.get("status") == "True":
            return dict(condition)
    return None


def _ready(manifest: Manifest, status: Manifest) -> bool:
    uncounted = (status.get("uncountedTerminatedPods") or {}).get("succeeded") or ()
    there = int(status.get("ready") or 0) + int(status.get("succeeded") or 0) + len(uncounted)
    return there >= _count(manifest["spec"]) and not _suspended(manifest)


def _reclaimable(spec: Manifest, status: Manifest) -> tuple[tuple[str, int], ...]:
    """Kueue's rule: pods beyond the completions still missing; an index that failed for good is not missing either."""
    count = _count(spec)
    completions = spec.get("completions")
    total: int = count if completions is None else completions
    settled = _terminal_indexes(status, total) if _indexed(spec) else status.get("succeeded") or 0
    missing = total - settled
    if count <= 1 or settled == 0 or missing >= count:
        return ()
    return ((POD_SET, count - max(missing, 0)),)


def _terminal_indexes(status: Manifest, completions: int) -> int:
    indexes = {
        index
        for field in ("completedIndexes", "failedIndexes")
        for first, last in _intervals(status.get(field) or "")
        for index in range(first, min(last + 1, completions))
    }
    return len(indexes)


def _intervals(text: str) -> Iterator[tuple[int, int]]:
    """Read ``0-3,5,7``, the way a Job's status lists indexes."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield int(first), int(last or first)

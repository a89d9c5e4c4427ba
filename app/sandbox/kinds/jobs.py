"""What does the simulated API know of batch/v1 Jobs: columns, and defaults and rules put together?"""

from collections.abc import Callable
from datetime import datetime

from app.apiserver.durations import duration
from app.apiserver.kinds import AGE, Column, Kind, Prepare
from app.core.manifests import Manifest
from app.errors import Invalid
from app.sandbox.batch import facts
from app.sandbox.batch.defaults import fill_job, fill_labels, fill_selector
from app.sandbox.batch.rules import Rules, job_faults, update_faults
from app.sandbox.batch.status_rules import status_faults
from app.sandbox.kinds import shapes
from app.sandbox.kinds.schema import CONDITIONS, POD_TEMPLATE, anything, flag, number, text
from app.sandbox.times import moment

_WORDS = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def job_kind(rules: Rules, clock: Callable[[], datetime]) -> Kind:
    """Return the kind; `clock` is what the Duration column counts to."""
    return Kind(
        group="batch",
        version="v1",
        kind="Job",
        plural="jobs",
        singular="job",
        namespaced=True,
        categories=("all",),
        columns=_columns(clock),
        schema=_SCHEMA,
        prepare=_prepare(rules),
        preserve_unknown=True,
        selectable=("status.successful",),
        unconditional_update=True,
    )


def _prepare(rules: Rules) -> Prepare:
    def prepare(new: Manifest, old: Manifest | None) -> Manifest:
        shapes.check(new, shapes.JOB)
        fill_job(new)
        if old is None:
            fill_selector(new)
            new["status"] = {}
            faults = job_faults(new)
        else:
            faults = [*update_faults(new, old, rules), *status_faults(new, old)]
        fill_labels(new)
        if faults:
            raise Invalid("the job is invalid", faults)
        return new

    return prepare


def _word(job: Manifest) -> str:
    status = facts.status_of(job)
    for condition, word in _WORDS:
        if condition == "Suspended" and facts.deleting(job):
            return "Terminating"
        if facts.holds(status, condition):
            return word
    return "Running"


def _completions(job: Manifest) -> str:
    spec, succeeded = job["spec"], facts.status_of(job).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _containers(job: Manifest, field: str) -> str:
    containers = job["spec"]["template"]["spec"].get("containers") or ()
    return ",".join(str(one.get(field) or "") for one in containers)


def _selector(job: Manifest) -> str:
    labels = (job["spec"].get("selector") or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def _columns(clock: Callable[[], datetime]) -> tuple[Column, ...]:
    def lasted(job: Manifest) -> str:
        status = facts.status_of(job)
        if not status.get("startTime"):
            return ""
        done = status.get("completionTime")
        until = moment(done) if done else clock()
        return duration(int((until - moment(status["startTime"])).total_seconds()))

    return (
        Column(name="Status", cell=_word, description="Status of the job."),
        Column(name="Completions", cell=_completions, description="Pods that succeeded, of all."),
        Column(name="Duration", cell=lasted, description="How long the job runs or ran."),
        AGE,
        Column(name="Containers", cell=lambda job: _containers(job, "name"), priority=1),
        Column(name="Images", cell=lambda job: _containers(job, "image"), priority=1),
        Column(name="Selector", cell=_selector, priority=1),
    )


_SCHEMA = anything(
    "Work that is done by pods until enough of them have succeeded.",
    spec=anything(
        "What is to be done.",
        parallelism=number("How many pods may run at the same time."),
        completions=number("How many pods must succeed."),
        backoffLimit=number("How many pods may fail before the job does."),
        activeDeadlineSeconds=number("How long the job may be active."),
        ttlSecondsAfterFinished=number("How long the job is kept after it ended."),
        completionMode=text("NonIndexed or Indexed."),
        suspend=flag("While true no pods run; active ones are deleted."),
        managedBy=text("Which controller runs this job."),
        template=POD_TEMPLATE,
    ),
    status=anything(
        "What the job controller says about the job.",
        active=number("Pods that are pending or running."),
        ready=number("Active pods that are ready."),
        succeeded=number("Pods that succeeded."),
        failed=number("Pods that failed."),
        terminating=number("Pods that are being stopped."),
        startTime=text("When the job last became active."),
        completionTime=text("When the job completed."),
        conditions=CONDITIONS,
    ),
)

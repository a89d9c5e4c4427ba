"""Is a Job over, and why?

The order matters: an interim condition that is already written decides, then failures (back-off limit, deadline), and
success last, which the plan judges after it knows how many pods stay active.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core.manifests import Manifest
from app.sandbox.batch import facts
from app.sandbox.batch.tally import Memory, Tally
from app.sandbox.times import moment, stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    fails: bool
    reason: str
    message: str

    @classmethod
    def completed(cls) -> "Verdict":
        message = "Reached expected number of succeeded pods"
        return cls(fails=False, reason="CompletionsReached", message=message)


def verdict(job: Manifest, count: Tally, now: datetime, speed: float) -> Verdict | None:
    status = facts.status_of(job)
    for kind in ("SuccessCriteriaMet", "FailureTarget"):
        written = facts.condition(status, kind)
        if written is not None and written["status"] == "True":
            fails = kind == "FailureTarget"
            return Verdict(fails=fails, reason=written["reason"], message=written["message"])
    if count.failed > job["spec"]["backoffLimit"]:
        message = "Job has reached the specified backoff limit"
        return Verdict(fails=True, reason="BackoffLimitExceeded", message=message)
    over_at = deadline(job, status, count.memory, speed)
    if over_at is not None and now >= over_at:
        message = "Job was active longer than specified deadline"
        return Verdict(fails=True, reason="DeadlineExceeded", message=message)
    return None


def deadline(job: Manifest, status: Manifest, memory: Memory, speed: float) -> datetime | None:
    """Return when ``activeDeadlineSeconds`` runs out; the clock stands still while suspended."""
    limit, started = job["spec"].get("activeDeadlineSeconds"), status.get("startTime")
    if limit is None or started is None or facts.suspended(job):
        return None
    exact = memory.started_at
    if exact is None or stamp(exact) != started:
        exact = moment(started)
    return exact + timedelta(seconds=limit / speed)

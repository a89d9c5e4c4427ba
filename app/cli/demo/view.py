"""What a person sees: the state of every job as rows, drawn as a live table, or told line by line where there is no
terminal. Reading is one list of Workloads and one of ClusterQueues; drawing is a pure function of that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.cli.demo.summary import GPU, Summary
from app.core import resources
from app.core.lifecycle import condition, is_true
from app.core.manifests import Manifest
from app.core.metadata import moment, spec_of, status_of

BAR = 24
COLOURS = {
    "waiting": "yellow",
    "running": "green",
    "done": "dim",
    "failed": "red",
    "stopping": "magenta",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    queue: str
    gpus: int
    flavor: str
    state: str
    since: datetime
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBar:
    name: str
    used: int
    nominal: int
    borrowed: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    rows: Sequence[Row]
    queues: Sequence[QueueBar]

    @property
    def is_settled(self) -> bool:
        """Sluice knows the end of every job it manages."""
        return bool(self.queues or self.rows) and self.finished == len(self.rows)

    @property
    def finished(self) -> int:
        return sum(row.state in ("done", "failed") for row in self.rows)


def picture(workloads: Iterable[Manifest], queues: Iterable[Manifest]) -> Picture:
    ordered = sorted(workloads, key=lambda one: one["metadata"]["creationTimestamp"])
    return Picture(rows=[_row(one) for one in ordered], queues=[_bar(one) for one in queues])


def draw(seen: Picture, lasted_s: float, now: datetime, height: int) -> RenderableType:
    """Jobs that run first, then those that wait; those that are done give way when the screen is short."""
    jobs = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("JOB", "QUEUE", "GPUS", "STATE", "FOR", "FLAVOR", ""):
        jobs.add_column(
            name,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if name in ("GPUS", "FOR") else "left",
        )
    rank = {"running": 0, "stopping": 0, "waiting": 1, "failed": 2, "done": 3}
    for row in sorted(seen.rows, key=lambda one: rank[one.state])[
        : max(5, height - len(seen.queues) - 6)
    ]:
        jobs.add_row(
            row.name,
            row.queue,
            str(row.gpus),
            Text(row.state, COLOURS[row.state]),
            f"{(now - row.since).total_seconds():.0f}s",
            row.flavor,
            Text(row.note, "dim"),
        )
    head = Text(f"{lasted_s:5.1f}s   {seen.finished} of {len(seen.rows)} jobs finished", "bold")
    return Group(head, *(_draw_bar(queue) for queue in seen.queues), jobs)


def told(before: Mapping[str, str], seen: Picture, lasted_s: float) -> Iterable[str]:
    """One line for each job whose state changed; for logs and pipes."""
    for row in seen.rows:
        if before.get(row.name) != row.state:
            where = f" on {row.flavor}" if row.state == "running" and row.flavor else ""
            note = f": {row.note}" if row.note and row.state == "waiting" else ""
            yield f"{lasted_s:6.1f}s  {row.state:8} {row.name:16} {row.queue:12} ({row.gpus} GPUs{where}){note}"


def closing(summary: Summary, seen: Picture) -> RenderableType:
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title="What it came to", title_justify="left"
    )
    for name in ("QUEUE", "JOBS", "MEAN WAIT", "LONGEST WAIT", "GPU HOURS", "OF THEM BORROWED"):
        table.add_column(name, justify="left" if name == "QUEUE" else "right")
    for queue in summary.queues:
        table.add_row(
            queue.name,
            str(queue.jobs),
            f"{queue.wait_mean_s:.1f}s",
            f"{queue.wait_max_s:.1f}s",
            f"{queue.gpu_hours:.3f}",
            f"{queue.borrowed_gpu_hours:.3f}",
        )
    failed = sum(row.state == "failed" for row in seen.rows)
    words = Text(
        f"{seen.finished} of {len(seen.rows)} jobs finished in {summary.lasted_s:.0f}s"
        f"{f' ({failed} failed)' if failed else ''}; "
    )
    if summary.utilisation is not None:
        words.append(f"{summary.utilisation:.0%} of the GPU quota was in use; ")
    words.append(
        "quota was never exceeded"
        if not summary.exceeded
        else f"QUOTA WAS EXCEEDED: {len(summary.exceeded)}",
        "green" if not summary.exceeded else "bold red",
    )
    return Group(table, words, *(Text(one, "red") for one in summary.exceeded[:5]))


def _row(workload: Manifest) -> Row:
    status, metadata = status_of(workload), workload["metadata"]
    state = _state(status)
    marked = {
        "running": "Admitted",
        "done": "Finished",
        "failed": "Finished",
        "stopping": "Evicted",
    }.get(state)
    since = (condition(status, marked) or {}).get("lastTransitionTime") if marked else None
    waits = condition(status, "QuotaReserved") or {}
    return Row(
        name=_job(metadata),
        queue=f"{metadata['namespace']}/{spec_of(workload).get('queueName', '')}",
        gpus=_gpus(workload),
        flavor=_flavor(status),
        state=state,
        since=moment(since or metadata["creationTimestamp"]),
        note=waits.get("message", "") if state == "waiting" else "",
    )


def _state(status: Manifest) -> str:
    finished = condition(status, "Finished")
    if finished is not None and finished["status"] == "True":
        return "done" if finished["reason"] == "Succeeded" else "failed"
    if status.get("admission"):
        return "stopping" if is_true(status, "Evicted") else "running"
    return "waiting"


def _job(metadata: Manifest) -> str:
    owners = metadata.get("ownerReferences") or ()
    return str(owners[0]["name"] if owners else metadata["name"])


def _gpus(workload: Manifest) -> int:
    total = 0
    for pod_set in spec_of(workload).get("podSets") or ():
        for container in (pod_set["template"].get("spec") or {}).get("containers") or ():
            asked = container.get("resources") or {}
            amount = (
                (asked.get("requests") or {}).get(GPU) or (asked.get("limits") or {}).get(GPU) or 0
            )
            total += resources.amount(GPU, amount) * pod_set.get("count", 1)
    return total


def _flavor(status: Manifest) -> str:
    assignments = (status.get("admission") or {}).get("podSetAssignments") or ()
    names = {one.get("flavors", {}).get(GPU) for one in assignments}
    return ", ".join(sorted(name for name in names if name))


def _bar(queue: Manifest) -> QueueBar:
    reserved = [
        one
        for flavor in status_of(queue).get("flavorsReservation") or ()
        for one in flavor["resources"]
        if one["name"] == GPU
    ]
    nominal = [
        one["nominalQuota"]
        for group in spec_of(queue).get("resourceGroups") or ()
        for flavor in group["flavors"]
        for one in flavor["resources"]
        if one["name"] == GPU
    ]
    return QueueBar(
        name=queue["metadata"]["name"],
        used=sum(resources.amount(GPU, one["total"]) for one in reserved),
        nominal=sum(resources.amount(GPU, one) for one in nominal),
        borrowed=sum(resources.amount(GPU, one.get("borrowed") or 0) for one in reserved),
        pending=status_of(queue).get("pendingWorkloads") or 0,
    )


def _draw_bar(queue: QueueBar) -> Text:
    own = queue.used - queue.borrowed
    scale = max(queue.nominal, queue.used, 1)
    text = Text(f"{queue.name:12} ")
    text.append("#" * round(own / scale * BAR), "green")
    text.append("+" * round(queue.borrowed / scale * BAR), "yellow")
    text.append(
        "." * max(0, BAR - round(own / scale * BAR) - round(queue.borrowed / scale * BAR)), "dim"
    )
    borrowed = f", {queue.borrowed} borrowed" if queue.borrowed else ""
    text.append(f" {queue.used} of {queue.nominal} GPUs{borrowed}, {queue.pending} waiting")
    return text

"""What do decisions cost, without any network or database?

`few` has 30 queues with 500 waiting workloads each, `many` has 1,000 queues with 50 each, ten queues to a cohort. It
shows the time to read and load all manifests, the memory a workload takes, and the cost of one cycle by what its heads
meet: room (all are admitted), no room (all are refused), the same as before (all are still blocked). Then decisions a
second, the image kept up to date included: workloads admitted and finished until none is left, and borrowers that are
preempted by the owners of the quota, who finish at once.
"""

import gc
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import psutil

from app.core.cycle import schedule
from app.core.decisions import CycleResult
from app.core.image import Image
from app.core.manifests import parse
from app.core.model import Noun, Workload
from app.core.policy import Policy
from tests.bench.report import Report
from tests.bench.wishes import Wishes
from tests.builders import NOW, cluster_queue, flavor, local_queue, workload

POLICY = Policy(never_overbook=True, break_loops=True)
COHORT = 10  # queues
SIZES = (1, 2, 3, 5)  # cpus
ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    queues: int
    each: int

    @property
    def total(self) -> int:
        return self.queues * self.each


def few(wishes: Wishes) -> Report:
    return _measured(Report("core/few"), Scale(queues=30, each=wishes.sized(15_000) // 30))


def many(wishes: Wishes) -> Report:
    queues = 100 if wishes.quick else 1000
    return _measured(Report("core/many"), Scale(queues=queues, each=50))


def _measured(report: Report, scale: Scale) -> Report:
    report.add("queues", scale.queues)
    report.add("workloads", scale.total, note="waiting")
    _loading(report, scale)
    _cycles(report, scale)
    _draining(report, scale)
    _reclaiming(report, scale)
    return report


def _loading(report: Report, scale: Scale) -> None:
    gc.collect()
    before, started = psutil.Process().memory_info().rss, time.perf_counter()
    nouns = [*_setup(scale, cpus="1"), *_waiting(scale)]
    read_s, started = time.perf_counter() - started, time.perf_counter()
    image = Image.load(nouns, POLICY)
    load_s = time.perf_counter() - started
    del nouns
    gc.collect()
    taken = psutil.Process().memory_info().rss - before
    report.add("reading manifests", read_s, "s", "made and parsed")
    report.add("loading the image", load_s, "s")
    report.add("memory", taken / scale.total, "bytes", "a workload")
    assert len(image.workloads) == scale.total


def _cycles(report: Report, scale: Scale) -> None:
    """The best of several: what a cycle costs when nobody else needs the core."""
    admitting, applying, refusing, blocked = [], [], [], []
    for _ in range(ROUNDS):
        image = _image(scale, _setup(scale, cpus="5", strict=True), _waiting(scale, most=2, cpus=5))
        result, seconds = _timed_cycle(image)
        assert len(result.admissions) == scale.queues
        admitting.append(seconds)
        applying.append(_timed_finish(image, result))
        result, seconds = _timed_cycle(image)
        assert len(result.pending) == scale.queues
        refusing.append(seconds)
        for _ in range(2):
            image.finish_cycle(result)
            result, seconds = _timed_cycle(image)
        blocked.append(seconds)
    report.add("cycle, all admitted", 1000 * min(admitting), "ms")
    report.add("... made true", 1000 * min(applying), "ms", "in the image")
    report.add("cycle, all refused", 1000 * min(refusing), "ms", "first look at every head")
    report.add("cycle, all blocked", 1000 * min(blocked), "ms", "nothing has changed")


def _draining(report: Report, scale: Scale) -> None:
    """Every queue has room for a few; whoever runs is finished between two cycles."""
    image = _image(scale, _setup(scale, cpus="10"), _waiting(scale))
    done, started = 0, time.perf_counter()
    while image.heads():
        result = schedule(image, POLICY, NOW)
        image.finish_cycle(result)
        done += len(result.admissions)
        for admit in result.admissions:
            running = image.workloads[admit.namespace, admit.name]
            image.put(replace(running, finished=True))
    seconds = time.perf_counter() - started
    assert done == scale.total
    report.add("admitted and finished", done / seconds, "a second", f"{done:,} in all")


def _reclaiming(report: Report, scale: Scale) -> None:
    """All quota is lent to one queue of each cohort; the owners come, one at a time and queue, and reclaim it."""
    setup = list(_setup(scale, cpus="5", reclaim=True))
    lent = [
        _workload(f"lent-{queue}-{nth}", queue, cpus=1)
        for queue in range(0, scale.queues, COHORT)
        for nth in range(5 * COHORT)
    ]
    image = _image(scale, setup, lent)
    while image.heads():
        image.finish_cycle(schedule(image, POLICY, NOW))
    for queue in range(scale.queues):
        if queue % COHORT:
            image.put(_workload(f"owner-{queue}", queue, cpus=5, age=-60))
    preempted = admitted = cycles = 0
    at, started = NOW, time.perf_counter()
    while cycles < 10 * COHORT and (heads := image.heads()):
        at, cycles = at + timedelta(seconds=1), cycles + 1
        result = schedule(image, POLICY, at)
        image.finish_cycle(result)
        preempted += len(result.preemptions)
        admitted += len(result.admissions)
        _stop(image, result)
        if not result.preemptions and not result.admissions:
            break
    seconds = time.perf_counter() - started
    assert preempted >= len(heads)
    note = f"{preempted:,} preempted, {admitted:,} admitted in {cycles} cycles"
    report.add("decided while reclaiming", (preempted + admitted) / seconds, "a second", note)


def _stop(image: Image, result: CycleResult) -> None:
    """The jobs of the victims have stopped."""
    for one in result.preemptions:
        victim = image.workloads[one.namespace, one.name]
        image.put(replace(victim, admission=None, reserved_at=None, admitted=False, requeued=True))


def _timed_cycle(image: Image) -> tuple[CycleResult, float]:
    started = time.perf_counter()
    result = schedule(image, POLICY, NOW)
    return result, time.perf_counter() - started


def _timed_finish(image: Image, result: CycleResult) -> float:
    started = time.perf_counter()
    image.finish_cycle(result)
    return time.perf_counter() - started


def _image(scale: Scale, setup: Iterable[Noun], waiting: Sequence[Workload]) -> Image:
    assert scale.queues
    gc.collect()
    return Image.load([*setup, *waiting], POLICY)


def _setup(
    scale: Scale, *, cpus: str, strict: bool = False, reclaim: bool = False
) -> Iterable[Noun]:
    yield parse(flavor())
    rules = {"reclaimWithinCohort": "Any"} if reclaim else {}
    strategy = "StrictFIFO" if strict else "BestEffortFIFO"
    for number in range(scale.queues):
        name = f"queue-{number:04}"
        made = cluster_queue(
            name,
            {"default": {"cpu": cpus, "memory": "1Ti"}},
            cohort=f"cohort-{number // COHORT:03}",
            preemption=rules,
            queueingStrategy=strategy,
        )
        yield parse(made)
        yield parse(local_queue(name, name))


def _waiting(scale: Scale, *, most: int | None = None, cpus: int | None = None) -> list[Workload]:
    return [
        _workload(
            f"w-{queue}-{nth}", queue, cpus=cpus or SIZES[nth % len(SIZES)], age=scale.each - nth
        )
        for queue in range(scale.queues)
        for nth in range(min(scale.each, most or scale.each))
    ]


def _workload(name: str, queue: int, *, cpus: int, age: int = 0) -> Workload:
    made = workload(name, f"queue-{queue:04}", cpu=str(cpus), memory="1Gi", age=age)
    read = parse(made)
    assert isinstance(read, Workload)
    return read

"""Those who used less of late go first; exactly, whatever the order of events, and each penalty once."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import admission_fairness as fairness
from app.core import decay
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.model import LocalQueue, Noun, Workload
from app.core.policy import AdmissionFairness, Policy
from tests.builders import NOW, admitted, cluster_queue, flavor, image, local_queue, run, workload

BILLION = 10**9
WEEK = AdmissionFairness(half_life=timedelta(hours=168))
SHARING = Policy(admission_fairness=WEEK)
USAGE_BASED = {"admissionMode": "UsageBasedAdmissionFairSharing"}


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def door(consumed: dict[str, int] | None = None, seconds: float | None = None) -> LocalQueue:
    return LocalQueue(
        namespace="default",
        name="main",
        cluster_queue="cq",
        consumed={name: amount * BILLION for name, amount in (consumed or {}).items()},
        consumed_at=None if seconds is None else at(seconds),
    )


def running(name: str, gpus: int, admitted_after: int | None, **more: bool) -> Workload:
    usage = {
        "name": "main",
        "count": 1,
        "flavors": {"gpu": "default"},
        "resourceUsage": {"gpu": gpus},
    }
    reserved = {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "x",
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }
    conditions = [reserved]
    if admitted_after is not None:
        time = at(admitted_after).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions.append({**reserved, "type": "Admitted", "lastTransitionTime": time})
    if more.get("finished"):
        conditions.append({**reserved, "type": "Finished"})
    status = {
        "conditions": conditions,
        "admission": {"clusterQueue": "cq", "podSetAssignments": [usage]},
    }
    found = parse(workload(name, status=status))
    assert isinstance(found, Workload)
    return found


def test_half_of_it_is_left_after_a_half_life() -> None:
    assert decay.left(0, 1000) == decay.ONE
    assert decay.left(1000, 1000) == decay.ONE // 2
    assert decay.left(3000, 1000) == decay.ONE // 8
    assert decay.left(10**9, 1) == 0
    assert decay.left(5, 0) == 0
    assert decay.left(-5, 1000) == decay.ONE


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_decay_is_the_power_of_two_to_fifteen_places(elapsed: int, half_life: int) -> None:
    assert decay.left(elapsed, half_life) / decay.ONE == pytest.approx(
        0.5 ** (elapsed / half_life), abs=1e-15
    )


def test_worked_numbers() -> None:
    one = running("w", 8, 0)
    assert fairness.penalty(one, WEEK)["gpu"] / BILLION == pytest.approx(0.00275, abs=1e-5)

    books = door({}, 0)
    for hour in range(1, 169):
        found = fairness.sample(books, [running("w", 8, -10)], WEEK, at(3600 * hour))
        books = LocalQueue(
            namespace="default",
            name="main",
            cluster_queue="cq",
            consumed=found.consumed,
            consumed_at=found.at,
        )
    assert books.consumed["gpu"] / BILLION == pytest.approx(4, abs=1e-6)


def test_a_penalty_counts_from_the_reservation_and_is_taken_in_once() -> None:
    books = door({}, 0)
    waiting, started = running("w", 8, None), running("w", 8, 5)
    owed = fairness.penalty(started, WEEK)
    assert fairness.is_open(waiting, books)
    assert fairness.is_open(started, books)
    assert not fairness.is_due(books, [started], WEEK, at(5.9))
    assert fairness.is_due(books, [started], WEEK, at(6))

    found = fairness.sample(books, [started], WEEK, at(6.7))
    assert found.at == at(6)
    assert found.consumed["gpu"] >= owed["gpu"]
    after = door(None, 6)
    assert not fairness.is_open(started, after)
    assert fairness.sample(after, [started], WEEK, at(6)).consumed == {}


def test_who_ended_early_pays_all_the_same() -> None:
    books = door({}, 0)
    ended = running("w", 8, 5, finished=True)
    assert fairness.sample(books, [ended], WEEK, at(6)).consumed == fairness.penalty(ended, WEEK)
    assert not fairness.is_open(running("v", 8, None, finished=True), books)


def test_without_a_half_life_nothing_is_remembered() -> None:
    rules = AdmissionFairness()
    books = door({"gpu": 5}, 0)
    assert fairness.penalty(running("w", 8, None), rules) == {"gpu": 8 * BILLION}
    assert fairness.sample(books, [running("w", 8, 1)], rules, at(500)).consumed == {}


def test_weights_of_queues_and_resources() -> None:
    rules = AdmissionFairness(weights=(("gpu", 2 * BILLION), ("cpu", 0)))
    plain = fairness.share(door({"gpu": 3, "cpu": 90}, 0), [], rules)
    assert plain == (0, 6 * BILLION * BILLION)
    double = LocalQueue(
        namespace="n",
        name="n",
        cluster_queue="q",
        weight_nanos=2 * BILLION,
        consumed={"gpu": 6 * BILLION},
    )
    assert fairness.share(double, [], rules) == plain
    nothing = LocalQueue(namespace="n", name="n", cluster_queue="q", weight_nanos=0)
    assert fairness.share(nothing, [], rules) > (0, 10**40)


def past(name: str, gpus: int) -> Manifest:
    manifest = local_queue(name, "cq")
    consumed = {"consumedResources": {"gpu": gpus}, "lastUpdate": "2026-01-01T11:59:00Z"}
    manifest["status"] = {"fairSharing": {"admissionFairSharingStatus": consumed}}
    return manifest


def shared(gpus: int = 10, policy: Policy = SHARING, **spec: object) -> Image:
    queue = cluster_queue("cq", {"default": {"gpu": gpus}}, admissionScope=USAGE_BASED, **spec)  # type: ignore[arg-type]
    nouns = [parse(one) for one in (flavor(), queue, past("greedy", 9), past("modest", 1))]
    return Image.load(nouns, policy)


def test_past_use_comes_before_priority_and_age() -> None:
    of = shared()
    of.put(parse(workload("g", "greedy", gpu="1", priority=9, age=99)))
    of.put(parse(workload("m1", "modest", gpu="1", age=1)))
    of.put(parse(workload("m2", "modest", gpu="1", priority=1)))
    assert [one.name for one in of.pending("cq")] == ["m2", "m1", "g"]
    assert [admitted(run(of, SHARING)) for _ in range(3)] == [["m2"], ["m1"], ["g"]]

    plain = image(
        flavor(),
        cluster_queue("cq", {"default": {"gpu": 9}}, admissionScope=USAGE_BASED),
        past("greedy", 9),
    )
    assert plain.rank_in("cq") is None


def test_each_admission_counts_at_once() -> None:
    rules = AdmissionFairness(half_life=timedelta(minutes=1))
    of = shared(policy=Policy(admission_fairness=rules))
    for name in ("greedy", "modest"):
        of.put(parse(local_queue(name, "cq")))
        for number in range(3):
            of.put(parse(workload(f"{name}{number}", name, gpu="1", age=50 - number)))
    served = [admitted(run(of, of.policy))[0] for _ in range(6)]
    assert served == ["greedy0", "modest0", "greedy1", "modest1", "greedy2", "modest2"]


def test_whoever_used_more_is_preempted_first() -> None:
    of = shared(gpus=2, preemption={"withinClusterQueue": "LowerPriority"})
    of.put(parse(workload("m", "modest", gpu="1", age=9)))
    run(of, SHARING)
    of.put(parse(workload("g", "greedy", gpu="1", priority=1, age=9)))
    run(of, SHARING)
    of.put(parse(workload("new", "modest", gpu="1", priority=5)))
    assert [one.name for one in run(of, SHARING, after=5).preemptions] == ["g"]


def test_the_image_reckons_the_same_whatever_the_order_of_events() -> None:
    of = shared()
    of.put(parse(workload("m", "modest", gpu="4")))
    run(of, SHARING)
    of.put(parse(past("modest", 2)))
    of.put(parse(past("greedy", 3)))
    nouns: list[Noun] = [*of.flavors.values(), *of.cluster_queues.values()]
    full = Image.load([*nouns, *of.workloads.values(), *of.local_queues.values()], SHARING)
    for name in ("greedy", "modest"):
        assert of.shares.of(("default", name)) == full.shares.of(("default", name))


def test_new_books_move_nobody_out_of_line_and_wake_nobody() -> None:
    of = shared(gpus=1)
    of.put(parse(workload("big", "modest", gpu="5")))
    run(of, SHARING)
    wakes, parked = of.wakes("cq"), [one.name for one in of.parked("cq")]
    assert parked == ["big"]
    of.put(parse(past("modest", 7)))
    assert (of.wakes("cq"), [one.name for one in of.parked("cq")]) == (wakes, parked)

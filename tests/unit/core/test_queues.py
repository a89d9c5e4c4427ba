"""Who is next, who is parked, and what brings the parked ones back."""

import pytest

from app.core.decisions import Requeue
from app.core.manifests import parse
from app.core.model import QueueingStrategy, Workload
from app.core.ordering import equivalence_key
from app.core.queues import PendingQueue, Progress
from tests.builders import workload


def noun(name: str, **more: object) -> Workload:
    parsed = parse(workload(name, **more))  # type: ignore[arg-type]
    assert isinstance(parsed, Workload)
    return parsed


def queue(*workloads: Workload, strict: bool = False) -> PendingQueue:
    strategy = QueueingStrategy.STRICT_FIFO if strict else QueueingStrategy.BEST_EFFORT_FIFO
    made = PendingQueue(strategy=strategy)
    for one in workloads:
        made.put(one)
    return made


def give_back(
    to: PendingQueue, one: Workload, reason: Requeue, *, woken: bool = False, tried: int = -1
) -> None:
    progress = Progress(
        cursor=((("cpu", tried),),), equivalence=equivalence_key(one), cycle=1, generation=0
    )
    to.requeue(one, reason, progress, woken=woken)


def names(workloads: list[Workload]) -> list[str]:
    return [one.name for one in workloads]


def test_line_is_ordered_by_priority_then_age_then_uid() -> None:
    line = queue(noun("young"), noun("b", age=9), noun("old", age=9), noun("urgent", priority=5))

    assert names(line.in_line()) == ["urgent", "b", "old", "young"]
    assert line.head() is line.in_line()[0]


def test_strict_head_blocks_and_best_effort_head_steps_aside() -> None:
    for strict, expected in ((True, ["big", "small"]), (False, ["small"])):
        big, small = noun("big", age=5, cpu="9"), noun("small", cpu="1")
        line = queue(big, small, strict=strict)

        give_back(line, big, Requeue.NO_FIT)

        assert names(line.in_line()) == expected


def test_strict_queue_still_parks_a_foreign_namespace() -> None:
    line = queue(noun("a"), strict=True)

    give_back(line, line.in_line()[0], Requeue.NAMESPACE_MISMATCH)

    assert names(line.parked()) == ["a"]


def test_equals_are_parked_with_the_head_and_on_arrival_until_a_wake_up() -> None:
    first = noun("first", age=5, cpu="2")
    line = queue(first, noun("twin", cpu="2"), noun("other", cpu="1"))

    give_back(line, first, Requeue.NO_FIT)
    line.put(noun("late-twin", cpu="2"))
    assert names(line.in_line()) == ["other"]
    assert names(line.parked()) == ["first", "late-twin", "twin"]

    line.wake(lambda _: True)
    assert names(line.in_line()) == ["first", "late-twin", "other", "twin"]


def test_waiting_for_quota_elsewhere_does_not_park_equals() -> None:
    first = noun("first", age=5, cpu="2")
    line = queue(first, noun("twin", cpu="2"))

    give_back(line, first, Requeue.GENERIC)

    assert names(line.in_line()) == ["twin"]


def test_a_wake_up_while_the_head_is_decided_is_not_lost() -> None:
    head = noun("head")
    line = queue(head)

    give_back(line, head, Requeue.NO_FIT, woken=True)

    assert names(line.in_line()) == ["head"]


def test_an_unfinished_flavor_scan_stays_in_line() -> None:
    head = noun("head")
    line = queue(head)

    give_back(line, head, Requeue.NO_FIT, tried=0)

    assert names(line.in_line()) == ["head"]


def test_a_preemptor_stays_first_whoever_arrives() -> None:
    preemptor = noun("preemptor")
    line = queue(preemptor)
    give_back(line, preemptor, Requeue.PENDING_PREEMPTION)

    line.put(noun("urgent", priority=100))
    assert names(line.in_line()) == ["preemptor", "urgent"]
    assert line.head() is preemptor

    line.remove(preemptor.uid)
    assert names(line.in_line()) == ["urgent"]


def test_a_strict_queue_has_no_sticky_head() -> None:
    preemptor = noun("preemptor")
    line = queue(preemptor, strict=True)
    give_back(line, preemptor, Requeue.PENDING_PREEMPTION)

    line.put(noun("urgent", priority=100))

    assert names(line.in_line()) == ["urgent", "preemptor"]


@pytest.mark.parametrize("strict", [True, False])
def test_back_off_parks_and_no_wake_up_helps(*, strict: bool) -> None:
    held = {
        "conditions": [{"type": "Requeued", "status": "False", "reason": "PodsReadyTimeout"}],
    }
    line = queue(noun("held", status=held), noun("free"), strict=strict)

    line.wake(lambda _: True)
    assert names(line.in_line()) == ["free"]

    line.put(noun("held"))
    assert names(line.in_line()) == ["free", "held"]


def test_a_head_that_changed_meanwhile_is_looked_at_again() -> None:
    before = noun("w", cpu="9")
    line = queue(before)
    line.put(noun("w", cpu="1"))

    give_back(line, before, Requeue.NO_FIT)

    assert names(line.in_line()) == ["w"]

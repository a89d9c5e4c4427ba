"""Where Kueue's own behaviour looks wrong, and which way we go."""

import pytest

from app.core import lifecycle
from tests.known_failures.shorthand import FLAVOR, cq, w
from tests.laws.stage import WHEN_TOLD, Stage


def test_nobody_moves_in_before_the_victims_have_moved_out() -> None:
    """Kueue counts victims as gone for whoever fits beside their preemptor, while they still run."""
    stage = _preemption_beside_two_that_fit(overbook=False).cycle(5)
    assert (stage.holding, stage.used("c")) == (["l1", "o1"], 4)

    assert stage.stop("l1").cycle(2).running == ["h1", "o1", "p1"]


def test_as_kueue_does_the_quota_is_exceeded_until_the_victims_have_stopped() -> None:
    """The same world without the promise never to overbook."""
    stage = _preemption_beside_two_that_fit(overbook=True).cycle(5)

    assert (stage.holding, stage.used("c")) == (["l1", "o1", "p1"], 5)


def _preemption_beside_two_that_fit(*, overbook: bool) -> Stage:
    """One gpu is free, two heads would take it, and a third one preempts more than it needs."""
    stage = Stage(
        FLAVOR,
        cq("h", 2, coh="c", reclaim="Any"),
        cq("o", 1, coh="c"),
        cq("p", 1, coh="c"),
        cq("l", 0, coh="c"),
        w("l1", 3),
        stopping=WHEN_TOLD,
        overbook=overbook,
    ).settle()
    return stage.add(w("h1", 2, p=9, t=1), w("o1", 1, t=2), w("p1", 1, t=3))


@pytest.mark.parametrize("cause", ["AdmissionCheck", "RequeuingLimitExceeded", "Whatever"])
def test_who_was_switched_off_by_us_can_be_switched_on_again(cause: str) -> None:
    """Kueue recognises only the plain reason of a user's deactivation, so that its own is for ever."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4)).settle()
    manifest = stage.find("Workload", "a1")

    stage.put(lifecycle.deactivate(manifest, cause, "It was time", stage.now)).settle()
    assert (stage.running, stage.reason("a1")) == ([], "Deactivated")

    assert stage.edit("Workload", "a1", active=True).settle().running == ["a1"]


@pytest.mark.parametrize("strict", [True, False])
def test_a_new_queueing_strategy_holds_from_then_on(*, strict: bool) -> None:
    """In Kueue what stands in line or aside stays there under the old rules."""
    big, small = w("a1", 5, p=1), w("a2", 4, t=1)
    stage = Stage(FLAVOR, cq("a", 4, strict=not strict), big).settle()

    stage.put(cq("a", 4, strict=strict)[0]).add(small).settle()

    assert stage.running == ([] if strict else ["a2"])


def test_quota_that_a_stopped_door_gives_back_wakes_its_tree() -> None:
    """Kueue wakes nobody when the workload's LocalQueue is stopped or gone, and room stays empty."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4)).settle()
    stage.add({**cq("a", 4)[1], "metadata": {"name": "side", "namespace": "default"}})
    stage.add(w("x1", 4, queue="side", t=1)).settle()
    assert stage.running == ["a1"]

    stage.edit("LocalQueue", "a", stopPolicy="HoldAndDrain").settle()

    assert stage.running == ["x1"]


def test_a_queue_that_reopens_cuts_no_back_off_short() -> None:
    """In Kueue a LocalQueue that starts again puts its workloads in line even before their time."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4)).settle()
    old = stage.find("Workload", "a1")
    waits = {"requeueState": {"count": 1, "requeueAt": "2026-01-01T13:00:00Z"}}
    stage.put({**old, "status": {**old["status"], **waits}}).evict("a1", "PodsReadyTimeout")

    for policy in ("Hold", "None"):
        stage.edit("LocalQueue", "a", stopPolicy=policy).settle()
        assert stage.running == []

"""Section D: decisions that meet a world that has moved on, and memory out of step with the record."""

from collections.abc import Iterator, Mapping
from itertools import permutations

import pytest

from app.core import lifecycle
from app.core.cycle import schedule
from app.core.model import ResourceFlavor
from app.core.policy import DEFAULT
from tests.builders import NOW, image
from tests.known_failures.shorthand import FLAVOR, cq, w
from tests.laws.stage import WHEN_TOLD, Stage
from tests.property.test_cycle_laws import state


def test_a_workload_that_changed_before_the_commit_is_admitted_once_and_as_it_is_now() -> None:
    """kueue#427: the decision made from the old copy is lost, the next one is made from the new."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4))
    stage.meanwhile = lambda: stage.edit("Workload", "a1", priority=7)

    assert stage.cycle().holding == []
    assert stage.waiting == ["a1"]

    assert stage.cycle(3).running == ["a1"]
    assert stage.record.newly_admitted == ["default/a1"]


@pytest.mark.parametrize(
    "events", list(permutations(["quota grew", "spec changed", "status noise", "woken"]))
)
def test_a_waiting_workload_stands_in_one_place_only(events: tuple[str, ...]) -> None:
    """kueue#9639."""
    stage = Stage(FLAVOR, cq("a", 4, coh="c"), cq("b", 1, coh="c"), w("a1", 9)).settle()
    happenings = {
        "quota grew": lambda: stage.put(cq("a", 5, coh="c")[0]),
        "spec changed": lambda: stage.edit("Workload", "a1", priority=1),
        "status noise": lambda: stage.put(
            lifecycle.set_condition(
                stage.find("Workload", "a1"),
                "PodsReady",
                status=False,
                reason="WaitForStart",
                message="",
                now=stage.now,
            )
        ),
        "woken": lambda: stage.put(cq("b", 2, coh="c")[0]),
    }
    for event in events:
        happenings[event]()
        assert stage.waiting == ["a1"]

    assert stage.settle().waiting == ["a1"]


def test_a_victim_that_takes_its_time_is_evicted_once() -> None:
    """kueue#9641: the preemptor asks every cycle, the eviction is told once."""
    stage = Stage(
        FLAVOR, cq("a", 1, within="LowerPriority"), w("a1", 1, p=-10), stopping=WHEN_TOLD
    ).settle()

    stage.add(w("a2", 1, p=10)).cycle(30)

    assert stage.evictions("a1") == 1
    assert len(stage.record.preempted) == 1
    assert stage.reason("a2") == "WaitingForPreemptedWorkloads"
    assert stage.stop("a1").cycle().running == ["a2"]


def test_a_victim_that_ends_by_itself_is_no_victim() -> None:
    """kueue#11647, #11502, #10208: what is in flight is read from the record, so nobody waits for a ghost."""
    stage = Stage(
        FLAVOR, cq("a", 1, within="LowerPriority"), w("a1", 1, p=-10), stopping=WHEN_TOLD
    ).settle()
    stage.add(w("a2", 1, p=10))
    stage.meanwhile = lambda: stage.finish("a1")

    assert stage.cycle(2).running == ["a2"]
    assert stage.evictions("a1") == 0


@pytest.mark.parametrize("ending", ["finished", "inactive", "deleted"])
def test_what_ended_while_it_was_decided_does_not_come_back(ending: str) -> None:
    """kueue#11021."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 9))
    endings = {
        "finished": lambda: stage.put(
            lifecycle.finish(stage.find("Workload", "a1"), "Succeeded", "", stage.now)
        ),
        "inactive": lambda: stage.edit("Workload", "a1", active=False),
        "deleted": lambda: stage.remove("Workload", "a1"),
    }
    stage.meanwhile = endings[ending]

    stage.cycle().put(cq("a", 20)[0]).settle()

    assert (stage.waiting, stage.holding) == ([], [])


class _FaultyFlavors(Mapping[str, ResourceFlavor]):
    """Breaks at the n-th question."""

    def __init__(self, real: Mapping[str, ResourceFlavor], questions: int) -> None:
        self.real, self.left = real, questions

    def __getitem__(self, name: str) -> ResourceFlavor:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("broken")
        return self.real[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.real)

    def __len__(self) -> int:
        return len(self.real)


def test_a_cycle_that_breaks_anywhere_leaves_the_image_as_it_was() -> None:
    """armada#4584: what was tried so far is taken back to the last nested map."""
    of = image(
        FLAVOR,
        *cq("a", 2, coh="c", reclaim="Any"),
        *cq("b", 2, coh="c", reclaim="Any"),
        *cq("d", 0, coh="c"),
        w("d1", 4),
    )
    of.finish_cycle(schedule(of, DEFAULT, NOW))
    for noun in image(w("a1", 2, t=1), w("b1", 2, t=2), w("d2", 1, t=3)).workloads.values():
        of.put(noun)
    flavors, before, broken = of.flavors, state(of), 0
    for questions in range(20):
        of.flavors = _FaultyFlavors(flavors, questions)  # type: ignore[assignment]
        of.nominations.clear()
        try:
            schedule(of, DEFAULT, NOW)
        except RuntimeError:
            broken += 1
        else:
            break
        assert state(of) == before
    assert broken > 3  # nominations, and one that is made anew behind others' victims


@pytest.mark.parametrize("first", ["finished", "told"])
def test_an_ending_absorbs_whatever_is_still_told_about_it(first: str) -> None:
    """armada#2757: late news changes nothing about what has ended, in whatever order they are read."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 3)).settle()
    old = stage.find("Workload", "a1")
    ended = lifecycle.finish(old, "Succeeded", "", stage.now)
    late = {**old["status"], "reclaimablePods": [{"name": "main", "count": 0}]}
    told = {**ended, "status": {**late, "conditions": ended["status"]["conditions"]}}

    for manifest in (ended, told) if first == "finished" else (told, ended):
        stage.put(manifest)

    assert (stage.used("a"), stage.waiting) == (0, [])
    assert lifecycle.evict(ended, "Preempted", "too late", stage.now) is ended
    assert lifecycle.finish(ended, "Failed", "too late", stage.now) is ended


def test_room_made_while_a_waiter_is_turned_down_is_not_lost_on_it() -> None:
    """kueue#512: release and wake-up are one change, and the waiter's verdict is older than it."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4)).settle().add(w("a2", 4, t=1))
    stage.meanwhile = lambda: stage.finish("a1")

    assert stage.cycle(2).running == ["a2"]


def test_what_is_evicted_does_not_start_again_before_it_has_stopped() -> None:
    """kueue#12873: free quota or not, old and new pods never run together."""
    stage = Stage(FLAVOR, cq("a", 8), w("a1", 4), stopping=WHEN_TOLD).settle()

    stage.evict("a1", "NodeFailures").cycle(5)
    assert stage.record.newly_admitted == ["default/a1"]
    assert stage.waiting == []

    stage.stop("a1").cycle()
    assert stage.record.newly_admitted == ["default/a1", "default/a1"]

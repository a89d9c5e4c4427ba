"""Section K: clocks that tick in whole seconds, and the orders that must not depend on them."""

from itertools import permutations

from app.core import lifecycle
from app.core.cycle import schedule
from app.core.manifests import parse
from app.core.policy import DEFAULT
from tests.builders import NOW, image
from tests.known_failures.shorthand import FLAVOR, cq, w
from tests.laws.stage import Stage


def test_workloads_of_one_second_have_one_order() -> None:
    """kueue#11200, #12965: however they are read, whoever reads them. The last word is the uid's, as in Kueue."""
    jobs = [w(f"a{i}", 1) for i in (1, 2, 3)]
    told = {
        tuple(one.name for one in image(FLAVOR, *cq("a", 1), *order).pending("a"))
        for order in permutations(jobs)
    }

    assert told == {("a1", "a2", "a3")}


def test_reservations_of_one_second_have_one_order() -> None:
    """kueue#11200: the victim is the same before and after a restart."""
    stage = Stage(
        FLAVOR,
        *(cq(name, 1, coh="c") for name in "abd"),
        cq("h", 1, coh="c", reclaim="Any"),
        cq("l", 0, coh="c"),
        w("h0", 1, t=0),
    )
    stage.add(w("l1", 1), w("a1", 1), w("b1", 1)).settle().add(w("h1", 1, p=1, t=9))

    told = set()
    for _ in range(3):
        told.add(repr(schedule(stage.image, stage.policy, stage.now).preemptions))
        stage.restart()

    assert len(told) == 1


def test_parts_of_a_second_are_not_remembered_longer_than_the_record_does() -> None:
    """The record keeps whole seconds; an image that knew better would decide otherwise after a restart."""
    of = image(FLAVOR, *cq("a", 4, within="LowerPriority"), w("a1", 4))
    now = NOW.replace(microsecond=987_654)
    admit = schedule(of, DEFAULT, now)
    of.finish_cycle(admit)
    manifest = lifecycle.admit(w("a1", 4), admit.admissions[0], now)
    assert of.workloads["default", "a1"] == parse(manifest)

    of.put(parse(w("a2", 4, p=1)))
    preempt = schedule(of, DEFAULT, now)
    of.finish_cycle(preempt)
    manifest = lifecycle.preempt(manifest, preempt.preemptions[0], now)
    assert of.workloads["default", "a1"] == parse(manifest)

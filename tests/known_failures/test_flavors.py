"""Section F: the flavor that is chosen, and the one that should have been."""

from typing import Any

import pytest

from app.core.manifests import Manifest
from tests.builders import cluster_queue, cohort, flavor, local_queue, workload
from tests.known_failures.shorthand import FLAVOR, cq, w
from tests.laws.stage import Stage

TRY_ALL = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}

TAINT = {"key": "gpu", "value": "a", "effect": "NoSchedule"}
TOLERATION = {"key": "gpu", "operator": "Equal", "value": "a", "effect": "NoSchedule"}


def queue(name: str, quota: dict[str, Any], **spec: Any) -> list[Manifest]:
    return [cluster_queue(name, {f: {"gpu": q} for f, q in quota.items()}, **spec), door(name)]


def door(name: str) -> Manifest:
    return local_queue(name, name)


def test_a_flavor_without_victims_does_not_outrank_one_that_fits() -> None:
    """kueue#13903, #13616: not even where preempting is preferred to borrowing."""
    prefer = {**TRY_ALL, "preference": "PreemptionOverBorrowing"}
    stage = Stage(
        *(flavor(name) for name in ("one", "two", "three")),
        cohort("root", None, {"three": {"gpu": 4}}),
        cohort("parent", "root", {"two": {"gpu": 4}}),
        queue(
            "t", {"one": (4, 0), "two": 0, "three": 0}, cohort="parent", flavorFungibility=prefer
        ),
        w("t1", 4),
    ).settle()
    assert stage.admission("t1")["flavors"] == {"gpu": "one"}

    stage.add(w("t2", 4, t=1)).settle()

    assert stage.admission("t2")["flavors"] == {"gpu": "two"}
    assert stage.evictions("t1") == 0


@pytest.mark.parametrize(
    ("selector", "chosen"), [({"x": "a", "y": "g"}, "f1"), ({"x": "b", "y": "g"}, None)]
)
def test_only_a_flavors_own_labels_are_compared(selector: dict[str, str], chosen: str) -> None:
    """kueue#12449: what it does not label is left to kube-scheduler, whatever other flavors label."""
    stage = Stage(
        flavor("f1", nodeLabels={"x": "a"}),
        flavor("f2", nodeLabels={"x": "b", "y": "k"}),
        queue("a", {"f1": 4, "f2": 4}),
        w("a1", 1, template={"nodeSelector": selector}),
    ).settle()

    found = stage.admission("a1")["flavors"]["gpu"] if stage.running else None
    assert found == chosen
    assert stage.reason("a1") == (None if chosen else "NoMatchingFlavor")


def test_preemption_is_possible_only_where_there_is_somebody_to_preempt() -> None:
    """kueue#5700, #5740, #7084: found by trying, not by a formula."""
    stage = Stage(
        flavor("f1"),
        flavor("f2"),
        queue("a", {"f1": 4, "f2": 2}, preemption={"withinClusterQueue": "LowerPriority"}),
        w("a1", 4, p=9),
        w("a2", 2, t=1),
    ).settle()

    stage.add(w("a3", 2, p=5, t=2)).settle()

    assert stage.admission("a3")["flavors"] == {"gpu": "f2"}
    assert stage.running == ["a1", "a3"]


def test_the_near_cohort_is_borrowed_from_before_the_far_one() -> None:
    """kueue#7042."""
    stage = Stage(
        flavor("f1"),
        flavor("f2"),
        cohort("root", None, {"f1": {"gpu": 4}}),
        cohort("parent", "root", {"f2": {"gpu": 4}}),
        queue("a", {"f1": 0, "f2": 0}, cohort="parent", flavorFungibility=TRY_ALL),
        w("a1", 4),
    ).settle()

    assert stage.admission("a1")["flavors"] == {"gpu": "f2"}


def test_an_interrupted_scan_goes_on_whatever_happens_in_the_cohort() -> None:
    """kueue#13956: whoever loses a flavor to another queue every cycle is offered the next one."""
    stage = Stage(
        flavor("f1"),
        flavor("f2"),
        cohort("c", None, {"f1": {"gpu": 4}}),
        queue("a", {"f1": 0, "f2": 4}, cohort="c"),
        queue("k", {"f1": 0}, cohort="c"),
        w("a1", 4),
        w("k1", 4, p=9, t=1),
    ).cycle()
    assert stage.running == ["k1"]

    stage.finish("k1").add(w("k2", 4, p=9, t=2)).cycle()

    assert stage.running == ["a1", "k2"]
    assert stage.admission("a1")["flavors"] == {"gpu": "f2"}


def test_who_matches_no_flavor_is_not_looked_at_again_until_one_changes() -> None:
    """kueue#2440, #3724, #13687, #13734, #13657: a flavor that tolerates its own taint takes everybody."""
    stage = Stage(flavor(nodeTaints=[TAINT]), cq("a", 4), w("a1", 4)).cycle()
    assert stage.reason("a1") == "NoMatchingFlavor"

    seen = stage.image.cycles
    assert stage.cycle(60).image.cycles == seen

    stage.put(flavor(nodeTaints=[TAINT], tolerations=[TOLERATION])).cycle()
    assert stage.running == ["a1"]


@pytest.mark.parametrize(
    ("before", "after", "template"),
    [
        ({"nodeTaints": [TAINT]}, {}, {}),
        ({"nodeLabels": {"x": "a"}}, {"nodeLabels": {"x": "b"}}, {"nodeSelector": {"x": "b"}}),
    ],
    ids=["taint removed", "label changed"],
)
def test_an_edited_flavor_wakes_who_it_kept_out(
    before: Manifest, after: Manifest, template: Manifest
) -> None:
    """kueue#13687, #13734, #13657: no other event is needed."""
    stage = Stage(flavor(**before), cq("a", 4), w("a1", 4, template=template)).cycle(3)
    assert stage.running == []

    assert stage.put(flavor(**after)).cycle().running == ["a1"]


def test_a_second_admission_names_nothing_of_the_first() -> None:
    """kueue#13132, #12994, #8488: between the two there is none, and the spec is what the user wrote."""
    stage = Stage(
        flavor("f1", nodeLabels={"pool": "f1"}),
        flavor("f2", nodeLabels={"pool": "f2"}),
        queue("a", {"f1": 4, "f2": 4}),
        workload("a1", "a", gpu=4),
    )
    submitted = stage.find("Workload", "a1")["spec"]
    stage.settle()
    assert stage.admission("a1")["flavors"] == {"gpu": "f1"}

    stage.put(queue("a", {"f1": 0, "f2": 4})[0]).evict("a1", "NodeFailures")
    assert "admission" not in stage.status("a1")
    stage.settle()

    assert stage.admission("a1")["flavors"] == {"gpu": "f2"}
    assert stage.find("Workload", "a1")["spec"] == submitted


def test_a_preemption_on_trial_restores_what_it_moved() -> None:
    """kueue#5700: take away and put back, and every number is what it was."""
    stage = Stage(FLAVOR, cq("a", 2, 1, 1, coh="c"), cq("b", 3, coh="c"), w("a1", 3), w("b1", 2))
    stage.settle()
    tree = stage.image.tree
    before = {name: dict(node.usage) for name, node in tree.queues().items()}
    with tree.trial():
        for sign in (-1, 1):
            for queue_name, held in stage.image.holdings.items():
                for holding in held.values():
                    tree.charge(queue_name, holding.usage, sign)
        assert {name: dict(node.usage) for name, node in tree.queues().items()} == before
    assert {name: dict(node.usage) for name, node in tree.queues().items()} == before

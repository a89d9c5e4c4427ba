"""Which flavor a workload gets, and why not the others."""

from typing import Any

import pytest

from tests.builders import (
    admitted,
    cluster_queue,
    flavor,
    image,
    local_queue,
    reasons,
    run,
    workload,
)

TWO = {"spot": {"cpu": "4"}, "reserved": {"cpu": "4"}}
SPOT = flavor(
    "spot",
    nodeLabels={"type": "spot"},
    nodeTaints=[{"key": "spot", "value": "true", "effect": "NoSchedule"}],
)
RESERVED = flavor("reserved", nodeLabels={"type": "reserved"})
TOLERATES_SPOT = {"tolerations": [{"key": "spot", "operator": "Exists"}]}


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"affinity": {"nodeAffinity": node}}


def flavor_of(template: dict[str, Any], **more: Any) -> str:
    queues = (cluster_queue("cq", TWO, **more), local_queue("main", "cq"))
    of = image(SPOT, RESERVED, *queues, workload("w", cpu="1", template=template))
    result = run(of)
    if not result.admissions:
        return result.pending[0].explanation.message
    return result.admissions[0].admission.pod_sets[0].flavors["cpu"]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param({}, "reserved", id="an untolerated taint keeps out"),
        pytest.param(TOLERATES_SPOT, "spot", id="first in the queue's order"),
        pytest.param(
            {**TOLERATES_SPOT, "nodeSelector": {"type": "reserved"}}, "reserved", id="selector"
        ),
        pytest.param(
            {**TOLERATES_SPOT, "nodeSelector": {"zone": "a"}},
            "spot",
            id="keys that the flavor does not define are ignored",
        ),
        pytest.param(
            {
                **TOLERATES_SPOT,
                **affinity([{"key": "type", "operator": "NotIn", "values": ["spot"]}]),
            },
            "reserved",
            id="required affinity",
        ),
        pytest.param(
            {
                **TOLERATES_SPOT,
                **affinity(
                    [{"key": "type", "operator": "In", "values": ["reserved"]}],
                    [{"key": "zone", "operator": "Exists"}],
                ),
            },
            "spot",
            id="a term left empty lifts the whole affinity",
        ),
    ],
)
def test_match(template: dict[str, Any], expected: str) -> None:
    assert flavor_of(template) == expected


def test_no_match_is_told_flavor_by_flavor() -> None:
    message = flavor_of({"nodeSelector": {"type": "other"}})

    assert message == (
        "couldn't assign flavors to pod set main: flavor reserved doesn't match node affinity, "
        "untolerated taint {spot true NoSchedule <nil>} in flavor spot"
    )


def test_borrowing_may_stop_the_search_or_go_on_to_the_next_flavor() -> None:
    for policy, expected in (("MayStopSearch", "one"), ("TryNextFlavor", "two")):
        of = image(
            flavor("one"),
            flavor("two"),
            cluster_queue(
                "cq",
                {"one": {"cpu": "1"}, "two": {"cpu": "4"}},
                cohort="co",
                flavorFungibility={"whenCanBorrow": policy},
            ),
            cluster_queue("lender", {"one": {"cpu": "4"}, "two": {"cpu": "4"}}, cohort="co"),
            local_queue("main", "cq"),
            workload("w", cpu="2"),
        )

        assert run(of).admissions[0].admission.pod_sets[0].flavors == {"cpu": expected}


def test_reason_is_that_of_the_mildest_flavor() -> None:
    of = image(
        flavor("one"),
        flavor("two"),
        cluster_queue("cq", {"one": {"cpu": "1"}, "two": {"cpu": "3"}}),
        local_queue("main", "cq"),
        workload("first", cpu="2", age=9),
        workload("second", cpu="2"),
    )

    assert admitted(run(of)) == ["first"]
    result = run(of)
    assert reasons(result) == {"second": "WaitingForQuota"}
    facts = {fact.flavor: fact for fact in result.pending[0].explanation.facts}
    assert (facts["one"].reason, facts["one"].limit) == ("ExceedsMaxQuota", 1000)
    assert (facts["two"].available, facts["two"].asked) == (1000, 2000)


def test_pod_sets_see_what_earlier_ones_take_and_the_gang_is_whole_or_absent() -> None:
    two_sets = workload("w", cpu="3")
    two_sets["spec"]["podSets"].append({**two_sets["spec"]["podSets"][0], "name": "more"})
    of = image(
        flavor(),
        cluster_queue("cq", {"default": {"cpu": "5"}}),
        local_queue("main", "cq"),
        two_sets,
    )

    result = run(of)

    assert reasons(result) == {"w": "ExceedsMaxQuota"}
    assert not of.holdings


def test_covered_pods_are_counted() -> None:
    of = image(
        flavor(),
        cluster_queue("cq", {"default": {"cpu": "9", "pods": "2"}}),
        local_queue("main", "cq"),
        workload("w", cpu="1", pods=3),
    )

    assert reasons(run(of)) == {"w": "ExceedsMaxQuota"}


def test_an_uncovered_resource_matches_no_flavor_unless_nothing_of_it_is_asked() -> None:
    queues = (flavor(), cluster_queue("cq", {"default": {"cpu": "9"}}), local_queue("main", "cq"))

    assert reasons(run(image(*queues, workload("w", cpu="1", gpu="1")))) == {
        "w": "NoMatchingFlavor"
    }
    assert admitted(run(image(*queues, workload("w", cpu="1", gpu="0")))) == ["w"]

"""Whole cycles: order, contention, partial admission, and who is turned away."""

from typing import Any

from app.core.cycle import schedule
from app.core.policy import DEFAULT, Policy
from tests.builders import (
    NOW,
    admitted,
    cluster_queue,
    flavor,
    image,
    local_queue,
    reasons,
    run,
    workload,
)

CPU4 = {"default": {"cpu": "4"}}


def test_no_heads_decide_nothing() -> None:
    of = image(flavor(), cluster_queue("cq", CPU4), local_queue("main", "cq"))

    assert schedule(of, DEFAULT, NOW).is_empty


def test_one_head_a_queue_and_cycle() -> None:
    of = image(
        flavor(),
        cluster_queue("cq", CPU4),
        local_queue("main", "cq"),
        workload("a", cpu="1", age=2),
        workload("b", cpu="1", age=1),
    )

    assert [admitted(run(of)) for _ in range(3)] == [["a"], ["b"], []]


def test_whoever_borrows_less_goes_first_and_the_others_see_what_is_taken() -> None:
    of = image(
        flavor(),
        cluster_queue("own", {"default": {"cpu": "3"}}, cohort="co"),
        cluster_queue("borrows", {"default": {"cpu": "1"}}, cohort="co"),
        local_queue("own", "own"),
        local_queue("borrows", "borrows"),
        workload("urgent", "borrows", cpu="2", priority=9),
        workload("modest", "own", cpu="3"),
    )

    result = run(of)

    assert admitted(result) == ["modest"]
    assert result.admissions[0].roots == ("co",)
    assert result.pending[0].explanation.message == (
        "Workload no longer fits after processing another workload"
    )
    assert of.pending("borrows")[0].name == "urgent"  # skipped, not parked


def test_partial_admission_takes_the_largest_size_that_fits() -> None:
    def world(policy: Policy) -> list[int]:
        of = image(
            flavor(),
            cluster_queue("cq", {"default": {"cpu": "7"}}),
            local_queue("main", "cq"),
            workload("w", cpu="1", pods=10, pod_set={"minCount": 4}),
        )
        result = run(of, policy)
        return [one.admission.pod_sets[0].count for one in result.admissions]

    assert world(DEFAULT) == [7]
    assert world(Policy(partial_admission=False)) == []


def test_a_selector_keeps_other_namespaces_out_and_does_not_block_the_queue() -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}
    of = image(
        flavor(),
        cluster_queue("cq", CPU4, namespaceSelector=selector, queueingStrategy="StrictFIFO"),
        local_queue("main", "cq"),
        workload("w", cpu="1"),
    )

    assert reasons(run(of)) == {"w": "Misconfigured"}
    assert [one.name for one in of.parked("cq")] == ["w"]


def test_queues_that_are_not_served_have_no_heads() -> None:
    of = image(
        flavor(),
        cluster_queue("stopped", CPU4, stopPolicy="Hold"),
        cluster_queue("broken", {"missing": {"cpu": "4"}}),
        local_queue("stopped", "stopped"),
        local_queue("broken", "broken"),
        workload("a", "stopped", cpu="1"),
        workload("b", "broken", cpu="1"),
    )

    assert schedule(of, DEFAULT, NOW).is_empty
    assert of.why_inactive("stopped") == "Stopped"
    assert of.why_inactive("broken") == "FlavorNotFound"


def test_checks_that_apply_to_the_flavor_are_named() -> None:
    checks: list[dict[str, Any]] = [
        {"name": "always"},
        {"name": "only-here", "onFlavors": ["default"]},
        {"name": "elsewhere", "onFlavors": ["other"]},
    ]
    of = image(
        flavor(),
        *(_check(rule["name"]) for rule in checks),
        cluster_queue("cq", CPU4, admissionChecksStrategy={"admissionChecks": checks}),
        local_queue("main", "cq"),
        workload("w", cpu="1"),
    )

    assert run(of).admissions[0].checks == ("always", "only-here")


def test_a_decision_that_lost_at_commit_leaves_its_workload_in_line() -> None:
    of = image(
        flavor(), cluster_queue("cq", CPU4), local_queue("main", "cq"), workload("w", cpu="1")
    )
    result = schedule(of, DEFAULT, NOW)

    of.finish_cycle(result, frozenset({"uid-w"}))

    assert [one.name for one in of.pending("cq")] == ["w"]
    assert admitted(run(of)) == ["w"]


def test_a_cycle_leaves_no_trace_until_it_is_finished() -> None:
    of = image(
        flavor(), cluster_queue("cq", CPU4), local_queue("main", "cq"), workload("w", cpu="1")
    )

    assert schedule(of, DEFAULT, NOW) == schedule(of, DEFAULT, NOW)
    assert not any((of.tree.queues()["cq"].usage or {}).values())


def _check(name: str) -> dict[str, object]:
    active = {"type": "Active", "status": "True"}
    return {
        "kind": "AdmissionCheck",
        "metadata": {"name": name},
        "status": {"conditions": [active]},
    }

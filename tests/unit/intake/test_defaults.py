"""Kueue's defaults, all of them and no others; and what the user wrote stays as it was."""

import copy
from typing import Any

import pytest

from app.core.manifests import Manifest
from tests.unit.intake.samples import (
    admission_check,
    cluster_queue,
    cohort,
    flavor,
    local_queue,
    manifest,
    pod_set,
    prepared,
    priority_class,
    topology,
    workload,
)

NEVER = {
    "reclaimWithinCohort": "Never",
    "borrowWithinCohort": {"policy": "Never"},
    "withinClusterQueue": "Never",
}
FUNGIBILITY = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
IN_USE = ["kueue.x-k8s.io/resource-in-use"]


def read(found: Manifest, *path: str | int) -> Any:
    value: Any = found
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize(
    ("given", "path", "expected"),
    [
        pytest.param(cluster_queue(), ("spec", "queueingStrategy"), "BestEffortFIFO", id="order"),
        pytest.param(cluster_queue(), ("spec", "stopPolicy"), "None", id="cq-stop"),
        pytest.param(cluster_queue(), ("spec", "preemption"), NEVER, id="preemption"),
        pytest.param(cluster_queue(), ("spec", "flavorFungibility"), FUNGIBILITY, id="fungibility"),
        pytest.param(
            cluster_queue(preemption={"reclaimWithinCohort": "Any"}),
            ("spec", "preemption"),
            {**NEVER, "reclaimWithinCohort": "Any"},
            id="rest-of-preemption",
        ),
        pytest.param(
            cluster_queue(
                preemption={
                    "reclaimWithinCohort": "Any",
                    "borrowWithinCohort": {"maxPriorityThreshold": 5},
                }
            ),
            ("spec", "preemption", "borrowWithinCohort"),
            {"maxPriorityThreshold": 5, "policy": "Never"},
            id="borrowing-policy",
        ),
        pytest.param(
            cluster_queue(flavorFungibility={"whenCanBorrow": "TryNextFlavor"}),
            ("spec", "flavorFungibility"),
            {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
            id="rest-of-fungibility",
        ),
        pytest.param(
            cluster_queue(fairSharing={}), ("spec", "fairSharing", "weight"), 1, id="cq-weight"
        ),
        pytest.param(
            cohort(fairSharing={}), ("spec", "fairSharing", "weight"), 1, id="cohort-weight"
        ),
        pytest.param(
            local_queue(fairSharing={}), ("spec", "fairSharing", "weight"), 1, id="lq-weight"
        ),
        pytest.param(local_queue(), ("spec", "stopPolicy"), "None", id="lq-stop"),
        pytest.param(workload(), ("spec", "active"), True, id="active"),
        pytest.param(
            workload({"template": {"spec": {"containers": []}}}),
            ("spec", "podSets", 0, "name"),
            "main",
            id="pod-set-name",
        ),
        pytest.param(
            workload({"template": {"spec": {"containers": []}}}),
            ("spec", "podSets", 0, "count"),
            1,
            id="pod-set-count",
        ),
        pytest.param(
            cluster_queue(
                resourceGroups=[cluster_queue()["spec"]["resourceGroups"][0]],
                concurrentAdmissionPolicy={"migration": {}},
            ),
            ("spec", "concurrentAdmissionPolicy", "migration", "mode"),
            "TryPreferredFlavors",
            id="migration-mode",
        ),
    ],
)
def test_an_absent_field_gets_the_default_of_kueue(
    given: Manifest, path: tuple[str | int, ...], expected: Any
) -> None:
    assert read(prepared(given), *path) == expected


def test_a_container_port_is_tcp() -> None:
    item = pod_set()
    item["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    found = prepared(workload(item))["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    assert found["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_null_counts_as_absent() -> None:
    given = cluster_queue(queueingStrategy=None, preemption=None, cohortName=None)
    spec = prepared(given)["spec"]
    assert spec["queueingStrategy"] == "BestEffortFIFO"
    assert spec["preemption"] == NEVER
    assert "cohortName" not in spec


def test_null_inside_a_pod_template_is_dropped_where_the_field_is_known() -> None:
    item = pod_set()
    item["template"]["metadata"] = {"creationTimestamp": None, "labels": None}
    template = prepared(workload(item))["spec"]["podSets"][0]["template"]
    assert "labels" not in template["metadata"]


def test_nothing_else_is_filled_in() -> None:
    spec = prepared(cluster_queue())["spec"]
    assert set(spec) == {
        "namespaceSelector",
        "resourceGroups",
        "queueingStrategy",
        "flavorFungibility",
        "preemption",
        "stopPolicy",
    }
    assert set(prepared(workload())["spec"]) == {"queueName", "podSets", "active"}
    assert "spec" not in prepared(manifest("ClusterQueue"))


def test_a_written_value_is_kept_to_the_byte() -> None:
    item = pod_set()
    item["template"]["spec"]["containers"][0]["resources"]["requests"] = {
        "cpu": "1000m",
        "memory": "1.50Gi",
        "nvidia.com/gpu": 1,
    }
    found = prepared(workload(item))
    assert found["spec"]["podSets"][0] == item


def test_the_given_manifest_is_never_changed() -> None:
    given = cluster_queue(fairSharing={}, preemption={"borrowWithinCohort": None})
    before = copy.deepcopy(given)
    prepared(given)
    assert given == before


def test_preparing_twice_changes_nothing_more() -> None:
    once = prepared(cluster_queue(fairSharing={}))
    assert prepared(once) == once
    assert prepared(once, once) is once


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(flavor(), IN_USE, id="flavor"),
        pytest.param(cluster_queue(), IN_USE, id="cluster-queue"),
        pytest.param(admission_check(), IN_USE, id="admission-check"),
        pytest.param(topology("rack"), IN_USE, id="topology"),
        pytest.param(cohort(), None, id="cohort"),
        pytest.param(local_queue(), None, id="local-queue"),
        pytest.param(workload(), None, id="workload"),
        pytest.param(priority_class(), None, id="priority-class"),
    ],
)
def test_the_in_use_finalizer_is_added_at_creation(
    given: Manifest, expected: list[str] | None
) -> None:
    assert prepared(given)["metadata"].get("finalizers") == expected


def test_the_finalizer_is_added_once_and_not_put_back_later() -> None:
    created = prepared(manifest("ResourceFlavor", metadata={"finalizers": ["a/b", *IN_USE]}))
    assert created["metadata"]["finalizers"] == ["a/b", *IN_USE]
    released = manifest("ResourceFlavor", metadata={"finalizers": ["a/b"]})
    assert prepared(released, created)["metadata"]["finalizers"] == ["a/b"]

"""What may and may not change in a Workload, given what it holds."""

from typing import Any

import pytest

from app.core.manifests import Manifest
from tests.unit.intake.samples import (
    GONE,
    NOW,
    condition,
    edited,
    pod_set,
    prepared,
    reserved,
    told,
    workload,
)

FIRST = "spec.podSets[0]"
REQUESTS = f"{FIRST}.template.spec.containers[0].resources.requests"
CLASS = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
POD_CLASS = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}
ASSIGNED = "status.admission.podSetAssignments[0]"
HELD = prepared(reserved())
CLASSED = prepared(reserved(priorityClassRef=CLASS, priority=1))
POD_CLASSED = prepared(reserved(priorityClassRef=POD_CLASS, priority=1))
DONE = prepared(edited(reserved(), "status.reclaimablePods", [{"name": "main", "count": 2}]))
CHECK = {"name": "budget", "state": "Ready", "lastTransitionTime": NOW, "message": ""}
CHECKED = prepared(
    edited(
        reserved(),
        "status.admissionChecks",
        [{**CHECK, "podSetUpdates": [{"name": "main", "nodeSelector": {"pool": "a"}}]}],
    )
)
UPDATES = "status.admissionChecks[0].podSetUpdates"
NOMINATED = prepared(workload(status={"nominatedClusterNames": ["west", "east"]}))
TAKEN = prepared(workload(status={"clusterName": "west"}))


@pytest.mark.parametrize(
    ("old", "path", "value", "fault", "reason"),
    [
        (HELD, f"{FIRST}.count", 2, f"{FIRST}.count", "Invalid"),
        (HELD, f"{FIRST}.minCount", 1, f"{FIRST}.minCount", "Invalid"),
        (HELD, REQUESTS, {"cpu": "2"}, f"{FIRST}.template", "Invalid"),
        (
            HELD,
            f"{FIRST}.topologyRequest",
            {"required": "r"},
            f"{FIRST}.topologyRequest",
            "Invalid",
        ),
        (HELD, "spec.queueName", "other", "spec.queueName", "Invalid"),
        (HELD, "spec.queueName", GONE, "spec.queueName", "Invalid"),
        (
            HELD,
            "spec.maximumExecutionTimeSeconds",
            60,
            "spec.maximumExecutionTimeSeconds",
            "Invalid",
        ),
        (CLASSED, "spec.priorityClassRef", GONE, "spec.priorityClassRef", "Invalid"),
        (HELD, "spec.priorityClassRef", CLASS, "spec.priorityClassRef", "Invalid"),
        (POD_CLASSED, "spec.priorityClassRef.name", "low", "spec.priorityClassRef.name", "Invalid"),
        (HELD, f"{ASSIGNED}.flavors", {"cpu": "reserved"}, "status.admission", "Invalid"),
        (HELD, f"{ASSIGNED}.resourceUsage", {"cpu": "6"}, "status.admission", "Invalid"),
        (HELD, "status.admission.clusterQueue", "other", "status.admission", "Invalid"),
        (DONE, "status.reclaimablePods", [], "status.reclaimablePods", "Required"),
        (
            DONE,
            "status.reclaimablePods[0].count",
            1,
            "status.reclaimablePods[0].count",
            "Invalid",
        ),
        (CHECKED, f"{UPDATES}[0].nodeSelector", {"pool": "b"}, UPDATES, "Invalid"),
        (CHECKED, UPDATES, GONE, UPDATES, "Invalid"),
        (TAKEN, "status.clusterName", "east", "status.clusterName", "Invalid"),
    ],
)
def test_what_the_reservation_rests_on_cannot_be_changed(
    old: Manifest, path: str, value: Any, fault: str, reason: str
) -> None:
    found = told(edited(old, path, value), old)
    if path == "spec.priorityClassRef" and value is not GONE:
        found = [entry for entry in found if entry[0] != "spec.priority"]
    assert found == [(fault, f"FieldValue{reason}")]


@pytest.mark.parametrize(
    ("old", "path", "value"),
    [
        pytest.param(HELD, REQUESTS, {"memory": "4096Mi", "cpu": "1000m"}, id="other-notation"),
        pytest.param(HELD, f"{FIRST}.template.spec.volumes", [], id="empty-list"),
        pytest.param(HELD, "spec.priority", 7, id="priority"),
        pytest.param(HELD, "spec.active", False, id="deactivate"),
        pytest.param(CLASSED, "spec.priorityClassRef.name", "low", id="class-name"),
        pytest.param(HELD, f"{ASSIGNED}.resourceUsage", {"cpu": "3000m"}, id="usage-notation"),
        pytest.param(HELD, f"{ASSIGNED}.delayedTopologyRequest", "Pending", id="delayed"),
        pytest.param(
            HELD, f"{ASSIGNED}.topologyAssignment", {"levels": ["r"], "slices": []}, id="placed"
        ),
        pytest.param(DONE, "status.reclaimablePods[0].count", 3, id="more-reclaimed"),
        pytest.param(CHECKED, "status.admissionChecks[0].state", "Retry", id="check-turns"),
        pytest.param(TAKEN, "status.clusterName", GONE, id="given-back"),
    ],
)
def test_what_it_does_not_rest_on_can(old: Manifest, path: str, value: Any) -> None:
    assert told(edited(old, path, value), old) == []


def test_an_admission_is_cleared_together_with_the_reservation() -> None:
    released = edited(HELD, "status", {"conditions": [condition("QuotaReserved", "False")]})
    assert told(released, HELD) == []
    assert told(edited(HELD, "status.admission", GONE), HELD) == [
        ("status.admission", "FieldValueRequired")
    ]


def test_a_waiting_workload_can_be_rewritten() -> None:
    old = prepared(workload(priorityClassRef=CLASS, priority=1))
    new = workload(pod_set("other", count=9), queueName="elsewhere")
    assert told(new, old) == []


def test_the_number_of_pod_sets_is_fixed_too() -> None:
    wrong = edited(HELD, "spec.podSets", [pod_set(), pod_set("more")])
    assert ("spec.podSets", "FieldValueInvalid") in told(wrong, HELD)


def test_an_elastic_workload_may_shrink_while_it_runs() -> None:
    elastic = edited(DONE, "metadata.annotations", {"kueue.x-k8s.io/elastic-job": "true"})
    smaller = edited(elastic, f"{FIRST}.count", 2)
    assert told(edited(smaller, "status.reclaimablePods[0].count", 1), elastic) == []
    assert told(edited(elastic, f"{FIRST}.count", 4), elastic) == [
        (f"{FIRST}.count", "FieldValueInvalid")
    ]


@pytest.mark.parametrize(("name", "accepted"), [("west", True), ("north", False)])
def test_the_cluster_must_be_a_nominated_one(name: str, *, accepted: bool) -> None:
    taken = workload(status={"clusterName": name})
    expected = [] if accepted else [("status.clusterName", "FieldValueNotSupported")]
    assert told(taken, NOMINATED) == expected


@pytest.mark.parametrize(
    ("before", "after", "accepted"),
    [("a,b", "b", True), ("a,b", "", True), ("a", "a,b", False), ("", "a", False)],
)
def test_admission_gates_can_only_be_taken_away(before: str, after: str, *, accepted: bool) -> None:
    key = "kueue.x-k8s.io/admission-gated-by"
    old, new = workload(), workload()
    old["metadata"]["annotations"] = {key: before}
    new["metadata"]["annotations"] = {key: after}
    expected = [] if accepted else [(f"metadata.annotations[{key}]", "FieldValueForbidden")]
    assert told(new, prepared(old)) == expected


def test_a_status_update_does_not_judge_the_spec_again() -> None:
    """An object stored under laxer rules must still be able to finish."""
    lax = edited(HELD, REQUESTS, {"cpu": "3", "CPU": "nonsense"})
    finished = edited(
        lax, "status.conditions", [*lax["status"]["conditions"], condition("Finished")]
    )
    assert told(finished, lax) == []
    assert told(edited(finished, "spec.priority", 1), lax) != []


def test_a_wrong_type_that_python_takes_for_equal_is_still_refused() -> None:
    old = prepared(edited(workload(), f"{FIRST}.count", 1))
    assert told(edited(old, f"{FIRST}.count", True), old) == [
        (f"{FIRST}.count", "FieldValueTypeInvalid")
    ]

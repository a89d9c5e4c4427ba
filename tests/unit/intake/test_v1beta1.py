"""Manifests of v1beta1 mean the same in v1beta2, and read back as they were written."""

import copy
from typing import Any

import pytest

from app.core.manifests import Manifest
from app.errors import Invalid
from app.intake.kinds.v1beta1 import old_version
from tests.unit.intake.samples import (
    NOW,
    admission_check,
    cluster_queue,
    cohort,
    edited,
    flavor,
    local_queue,
    pod_set,
    prepared,
    priority_class,
    reserved,
    topology,
    workload,
)

OLD = "kueue.x-k8s.io/v1beta1"


def old(manifest: Manifest) -> Manifest:
    return {**manifest, "apiVersion": OLD}


def stored(manifest: Manifest) -> Manifest:
    return old_version(manifest["kind"]).to_storage(manifest)


def read(manifest: Manifest) -> Manifest:
    return old_version(manifest["kind"]).from_storage(manifest)


ASSIGNMENT = "status.admission.podSetAssignments[0].topologyAssignment"
PLAIN = {
    "levels": ["block", "rack"],
    "domains": [
        {"values": ["b-1", "r-1"], "count": 2},
        {"values": ["b-1", "r-2"], "count": 1},
    ],
}
SLICED = {
    "levels": ["block", "rack"],
    "slices": [
        {
            "domainCount": 2,
            "valuesPerLevel": [{"universalValue": "b-1"}, {"prefix": "r-", "roots": ["1", "2"]}],
            "podCounts": [2, 1],
        }
    ],
}
USAGE = [{"name": "spot", "resources": [{"name": "cpu", "total": "3"}]}]


@pytest.mark.parametrize(
    ("v1beta1", "v1beta2"),
    [
        pytest.param(
            old(cluster_queue(cohort="research")),
            cluster_queue(cohortName="research"),
            id="cohort",
        ),
        pytest.param(
            old(
                cluster_queue(
                    flavorFungibility={"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
                )
            ),
            cluster_queue(
                flavorFungibility={
                    "whenCanBorrow": "MayStopSearch",
                    "whenCanPreempt": "MayStopSearch",
                }
            ),
            id="fungibility",
        ),
        pytest.param(
            old(cluster_queue(admissionChecks=["budget", "provisioning"])),
            cluster_queue(
                admissionChecksStrategy={
                    "admissionChecks": [{"name": "budget"}, {"name": "provisioning"}]
                }
            ),
            id="admission-checks",
        ),
        pytest.param(
            old(
                cluster_queue(
                    admissionChecksStrategy={
                        "admissionChecks": [{"name": "a", "onFlavors": ["spot"]}]
                    }
                )
            ),
            cluster_queue(
                admissionChecksStrategy={"admissionChecks": [{"name": "a", "onFlavors": ["spot"]}]}
            ),
            id="strategy",
        ),
        pytest.param(old(cohort(parent="all")), cohort(parentName="all"), id="parent"),
        pytest.param(
            {**old(local_queue()), "status": {"flavorUsage": USAGE, "pendingWorkloads": 2}},
            {**local_queue(), "status": {"flavorsUsage": USAGE, "pendingWorkloads": 2}},
            id="flavor-usage",
        ),
        pytest.param(
            old(
                workload(
                    priority=5,
                    priorityClassName="high",
                    priorityClassSource="kueue.x-k8s.io/workloadpriorityclass",
                )
            ),
            workload(
                priority=5,
                priorityClassRef={
                    "group": "kueue.x-k8s.io",
                    "kind": "WorkloadPriorityClass",
                    "name": "high",
                },
            ),
            id="workload-priority-class",
        ),
        pytest.param(
            old(
                workload(
                    priority=5,
                    priorityClassName="high",
                    priorityClassSource="scheduling.k8s.io/priorityclass",
                )
            ),
            workload(
                priority=5,
                priorityClassRef={
                    "group": "scheduling.k8s.io",
                    "kind": "PriorityClass",
                    "name": "high",
                },
            ),
            id="pod-priority-class",
        ),
        pytest.param(
            old(workload(status={"accumulatedPastExexcutionTimeSeconds": 30})),
            workload(status={"accumulatedPastExecutionTimeSeconds": 30}),
            id="misspelt-field",
        ),
        pytest.param(
            old(edited(reserved(), ASSIGNMENT, PLAIN)),
            edited(reserved(), ASSIGNMENT, SLICED),
            id="topology-assignment",
        ),
        pytest.param(old(admission_check()), admission_check(), id="admission-check"),
        pytest.param(
            old(flavor(nodeLabels={"a": "b"})), flavor(nodeLabels={"a": "b"}), id="flavor"
        ),
        pytest.param(old(priority_class()), priority_class(), id="priority-class"),
        pytest.param(old(topology("rack")), topology("rack"), id="topology"),
    ],
)
def test_both_directions(v1beta1: Manifest, v1beta2: Manifest) -> None:
    given = copy.deepcopy((v1beta1, v1beta2))
    assert stored(v1beta1) == v1beta2
    assert read(v1beta2) == v1beta1
    assert (v1beta1, v1beta2) == given
    prepared(stored(v1beta1))


@pytest.mark.parametrize(
    ("v1beta1", "v1beta2"),
    [
        pytest.param(
            old(admission_check(retryDelayMinutes=15)), admission_check(), id="retry-delay"
        ),
        pytest.param(
            {**old(cluster_queue()), "status": {"pendingWorkloadsStatus": {"lastChangeTime": NOW}}},
            {**cluster_queue(), "status": {}},
            id="pending-workloads-status",
        ),
        pytest.param(
            {**old(local_queue()), "status": {"flavors": [{"name": "spot"}]}},
            {**local_queue(), "status": {}},
            id="flavors",
        ),
        pytest.param(
            old(workload(priority=5, priorityClassName="high", priorityClassSource="")),
            workload(priority=5),
            id="class-without-source",
        ),
    ],
)
def test_what_v1beta2_has_no_place_for_is_dropped(v1beta1: Manifest, v1beta2: Manifest) -> None:
    assert stored(v1beta1) == v1beta2


def test_fields_newer_than_v1beta1_pass_through_it() -> None:
    given = workload(preemptionGates=[{"name": "kueue.x-k8s.io/multikueue"}])
    assert stored(read(given)) == given


BOTH: dict[str, Any] = {"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]}}


def test_the_same_checks_may_be_named_both_ways() -> None:
    """So applies to an object that reads back the plain list."""
    assert stored(old(cluster_queue(admissionChecks=["a"], **BOTH))) == cluster_queue(**BOTH)


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        pytest.param(
            old(cluster_queue(admissionChecks=["b"], **BOTH)), "spec.admissionChecks", id="checks"
        ),
        pytest.param(
            old(workload(priorityClassName="a", priorityClassSource="somewhere")),
            "spec.priorityClassSource",
            id="priority-source",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(wrong: Manifest, path: str) -> None:
    with pytest.raises(Invalid) as caught:
        stored(wrong)
    assert [fault.path for fault in caught.value.causes] == [path]


@pytest.mark.parametrize(
    "kind", ["ClusterQueue", "Cohort", "LocalQueue", "Workload", "AdmissionCheck"]
)
@pytest.mark.parametrize("part", [None, [], "text", {"admission": []}, {"resourceGroups": "x"}])
def test_a_malformed_manifest_reaches_the_validation(kind: str, part: Any) -> None:
    given = {
        "apiVersion": OLD,
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": part,
        "status": part,
    }
    assert stored(given)["spec"] == part


def test_a_malformed_topology_assignment_is_left_for_the_validation_to_refuse() -> None:
    broken = {"levels": ["rack"], "domains": [{"values": ["r-1", "r-2"], "count": 1}]}
    given = old(edited(reserved(), ASSIGNMENT, broken))
    with pytest.raises(Invalid) as caught:
        prepared(stored(given))
    assert f"{ASSIGNMENT}.domains" in [fault.path for fault in caught.value.causes]


@pytest.mark.parametrize(
    ("kind", "path", "there"),
    [
        ("ClusterQueue", ("spec", "cohort"), True),
        ("ClusterQueue", ("spec", "cohortName"), False),
        ("ClusterQueue", ("spec", "admissionChecks"), True),
        ("ClusterQueue", ("status", "pendingWorkloadsStatus"), True),
        ("Cohort", ("spec", "parent"), True),
        ("Cohort", ("spec", "parentName"), False),
        ("LocalQueue", ("status", "flavorUsage"), True),
        ("LocalQueue", ("status", "flavorsUsage"), False),
        ("Workload", ("spec", "priorityClassName"), True),
        ("Workload", ("spec", "priorityClassRef"), False),
        ("Workload", ("status", "accumulatedPastExexcutionTimeSeconds"), True),
        ("AdmissionCheck", ("spec", "retryDelayMinutes"), True),
        ("Topology", ("spec", "levels"), True),
    ],
)
def test_the_schema_has_the_old_names(kind: str, path: tuple[str, ...], *, there: bool) -> None:
    node: Any = old_version(kind).schema
    for name in path[:-1]:
        node = node["properties"][name]
    assert (path[-1] in node["properties"]) is there


def test_the_schema_of_v1beta2_is_not_touched_by_that_of_v1beta1() -> None:
    old_version("ClusterQueue")
    item = pod_set()
    assert prepared(workload(item))["spec"]["podSets"] == [item]
    assert (
        prepared(cluster_queue())["spec"]["flavorFungibility"]["whenCanBorrow"] == "MayStopSearch"
    )

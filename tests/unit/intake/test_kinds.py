"""What the API server is told of our kinds: names as in Kueue, and columns that never fail."""

import pytest

from app.api.kinds import KINDS
from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from tests.unit.intake.samples import (
    API_VERSION,
    NOW,
    cluster_queue,
    condition,
    group,
    local_queue,
    pod_set,
    priority_class,
    reserved,
    topology,
    workload,
)

BY_NAME = {kind.kind: kind for kind in KINDS}


def shown(kind: str, manifest: Manifest) -> dict[str, object]:
    return {column.name: column.cell(manifest) for column in BY_NAME[kind].columns}


@pytest.mark.parametrize(
    ("kind", "plural", "short", "namespaced", "status"),
    [
        ("AdmissionCheck", "admissionchecks", "ac", False, True),
        ("ClusterQueue", "clusterqueues", "cq", False, True),
        ("Cohort", "cohorts", "co", False, True),
        ("LocalQueue", "localqueues", "lq", True, True),
        ("ResourceFlavor", "resourceflavors", "rf", False, False),
        ("Topology", "topologies", None, False, False),
        ("Workload", "workloads", "wl", True, True),
        ("WorkloadPriorityClass", "workloadpriorityclasses", "wpc", False, False),
    ],
)
def test_names(
    kind: str, plural: str, short: str | None, *, namespaced: bool, status: bool
) -> None:
    found = BY_NAME[kind]
    assert (found.api_version, found.plural, found.singular) == (API_VERSION, plural, kind.lower())
    assert short is None or short in found.short_names
    assert (found.namespaced, found.status) == (namespaced, status)
    assert list(found.served) == ["v1beta1"]


def test_no_two_kinds_answer_to_one_name() -> None:
    names = [name for kind in KINDS for name in (kind.plural, kind.singular, *kind.short_names)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_columns_of_an_empty_object(kind: Kind) -> None:
    bare = {"apiVersion": API_VERSION, "kind": kind.kind, "metadata": {"name": "a"}}
    assert all(column.cell(bare) in (None, "", 0) for column in kind.columns)


def test_columns_of_a_cluster_queue() -> None:
    status = {"pendingWorkloads": 3, "conditions": [condition("Active", "False", reason="Stopped")]}
    given = {
        **cluster_queue(cohortName="research", queueingStrategy="StrictFIFO"),
        "status": status,
    }
    assert shown("ClusterQueue", given) == {
        "Cohort": "research",
        "Strategy": "StrictFIFO",
        "Pending Workloads": 3,
        "Admitted Workloads": 0,
        "Active": "False",
        "Reason": "Stopped",
        "Flavors": "spot,reserved",
        "Age": None,
    }
    default = [column.name for column in BY_NAME["ClusterQueue"].columns if not column.priority]
    assert default == ["Cohort", "Pending Workloads", "Age"]


def test_columns_of_a_local_queue() -> None:
    found = shown("LocalQueue", {**local_queue(), "status": {"admittedWorkloads": 2}})
    assert (found["ClusterQueue"], found["Pending Workloads"]) == ("research", 0)
    assert found["Admitted Workloads"] == 2


def test_columns_of_workloads() -> None:
    found = shown("Workload", reserved(pod_set("a"), pod_set("b", count=2), priority=9))
    assert found == {
        "Queue": "main",
        "Reserved in": "research",
        "Admitted": "True",
        "Finished": None,
        "Age": NOW,
        "Priority": 9,
        "Pods": 5,
        "Waiting for": None,
    }
    waiting = condition("QuotaReserved", "False", reason="WaitingForQuota")
    assert (
        shown("Workload", workload(status={"conditions": [waiting]}))["Waiting for"]
        == "WaitingForQuota"
    )


def test_columns_of_the_others() -> None:
    assert shown("WorkloadPriorityClass", priority_class(7))["Value"] == 7
    assert shown("Topology", topology("block", "rack"))["Levels"] == "block,rack"
    labels = {"spec": {"nodeLabels": {"a": "b", "c": "d"}}, "metadata": {}}
    assert shown("ResourceFlavor", labels)["Node labels"] == "a=b,c=d"
    quotas = {"spec": {"parentName": "all", "resourceGroups": [group("x")]}, "metadata": {}}
    assert shown("Cohort", quotas)["Flavors"] == "x"

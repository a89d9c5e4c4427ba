"""What does an admission put into the pods?"""

from typing import Any

import pytest

from app.core.manifests import Manifest
from app.errors import Conflict
from app.jobs import labels
from app.jobs.podsets import CannotStart
from app.jobs.start import start_info

FLAVORS: dict[str, Manifest] = {
    "gpu": {
        "spec": {
            "nodeLabels": {"pool": "gpu", "zone": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        }
    },
    "net": {"spec": {"nodeLabels": {"fabric": "ib", "zone": "b"}}},
    "plain": {"spec": {}},
}


def workload(flavors: dict[str, str], queue: str = "lq", **status: Any) -> Manifest:
    assignment = {"name": "main", "flavors": flavors, "count": 2}
    return {
        "metadata": {"name": "job-x-12345", "namespace": "team-a"},
        "spec": {"queueName": queue, "podSets": [{"name": "main", "count": 3}]},
        "status": {
            "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
            **status,
        },
    }


def test_flavors_give_selector_and_tolerations() -> None:
    info = start_info(
        workload({"cpu": "gpu", "example.com/net": "net"}), FLAVORS, attempt=3, epoch=4
    )
    (entry,) = info.pod_sets
    assert (info.attempt, info.epoch, entry.name, entry.count) == (3, 4, "main", 2)
    assert entry.node_selector == {"pool": "gpu", "zone": "a", "fabric": "ib"}
    assert entry.tolerations == ({"key": "gpu", "operator": "Exists"},)
    assert entry.labels == {
        labels.PODSET: "main",
        labels.CLUSTER_QUEUE_NAME: "cq",
        labels.LOCAL_QUEUE_NAME: "lq",
    }
    assert entry.annotations == {labels.WORKLOAD: "job-x-12345"}


def test_a_name_too_long_for_a_label_is_left_out() -> None:
    (entry,) = start_info(workload({}, "q" * 64), FLAVORS, attempt=1, epoch=1).pod_sets
    assert labels.LOCAL_QUEUE_NAME not in entry.labels


def test_a_missing_flavor_means_deciding_again() -> None:
    with pytest.raises(Conflict, match="gone"):
        start_info(workload({"cpu": "gone"}), FLAVORS, attempt=1, epoch=1)


def checked(**update: Any) -> Manifest:
    updates = [{"name": "main", **update}, {"name": "other", "nodeSelector": {"no": "no"}}]
    return workload({"cpu": "gpu"}, admissionChecks=[{"name": "c", "podSetUpdates": updates}])


def test_checks_add_to_what_the_flavors_give() -> None:
    given = checked(
        nodeSelector={"node": "n"},
        labels={"l": "1"},
        tolerations=[{"key": "t"}],
        annotations={"a": "1"},
    )
    (entry,) = start_info(given, FLAVORS, attempt=1, epoch=1).pod_sets
    assert entry.node_selector == {"pool": "gpu", "zone": "a", "node": "n"}
    assert entry.tolerations == ({"key": "gpu", "operator": "Exists"}, {"key": "t"})
    assert entry.labels["l"] == "1"
    assert entry.annotations["a"] == "1"


@pytest.mark.parametrize(
    "update", [{"nodeSelector": {"pool": "x"}}, {"labels": {labels.PODSET: "x"}}]
)
def test_a_check_that_contradicts_is_a_permanent_error(update: dict[str, Any]) -> None:
    with pytest.raises(CannotStart):
        start_info(checked(**update), FLAVORS, attempt=1, epoch=1)

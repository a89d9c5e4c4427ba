"""Which adapter and which owner does an object have?"""

import pytest

from app.core.manifests import Manifest
from app.jobs.identity import controller_owner, number, queue_name
from app.jobs.registry import ADAPTERS, adapter_for, supports
from tests.unit.jobs.cluster import job


def test_adapters_are_found_by_exact_version() -> None:
    assert adapter_for("batch/v1", "Job") is ADAPTERS[0]
    assert adapter_for("batch/v1beta1", "Job") is None
    assert adapter_for("v1", "Pod") is None
    assert supports("batch", "Job")
    assert not supports("batch", "CronJob")


def test_the_controlling_owner_is_the_one_that_counts() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"}
    owner = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "name": "r",
        "uid": "2",
        "controller": True,
    }
    found = controller_owner(job(ownerReferences=[other, owner]))
    assert found is not None
    assert (found.group, found.kind, found.name, found.uid) == ("ray.io", "RayJob", "r", "2")
    assert controller_owner(job(ownerReferences=[other])) is None
    assert controller_owner(job()) is None


@pytest.mark.parametrize(
    ("metadata", "queue"),
    [
        ({"labels": None}, ""),
        ({"labels": {}}, ""),
        ({"labels": {"kueue.x-k8s.io/queue-name": ""}}, ""),
    ],
)
def test_no_queue_is_an_empty_name(metadata: Manifest, queue: str) -> None:
    assert queue_name(job(**metadata)) == queue


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("12", 12), ("-1", None), ("1.5", None), ("", None), (None, None), ("9" * 30, None)],
)
def test_numbers_in_annotations(text: str | None, value: int | None) -> None:
    assert number(text) == value

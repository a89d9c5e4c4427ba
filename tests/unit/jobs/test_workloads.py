"""Is the Workload of a job the one Kueue would make, and does it still say the same as the job?"""

import hashlib
from typing import Any

import pytest

from app.core.manifests import Manifest
from app.jobs import labels
from app.jobs.batch_job import BatchJobAdapter
from app.jobs.identity import JobKind
from app.jobs.workloads import workload_name
from tests.unit.jobs.cluster import job, template

ADAPTER = BatchJobAdapter()
JOB = ADAPTER.kind


def test_name_is_kind_job_and_a_hash_of_what_identifies_it() -> None:
    digest = hashlib.sha1(b"Job\nbatch\ntrain\njob-uid-1").hexdigest()[:5]
    assert workload_name(JOB, "train", "job-uid-1") == f"job-train-{digest}"


def test_name_is_cut_to_what_a_name_may_be() -> None:
    name = workload_name(JOB, "x" * 253, "u")
    assert len(name) == 253
    assert name.startswith("job-xxx")
    assert name[-6] == "-"


def test_names_of_two_jobs_differ_by_uid_and_group() -> None:
    other = JobKind(group="example.com", version="v1", kind="Job", plural="jobs")
    found = {
        workload_name(JOB, "a", "1"),
        workload_name(JOB, "a", "2"),
        workload_name(other, "a", "1"),
    }
    assert len(found) == 3


def test_workload_of_a_job() -> None:
    live = job(
        annotations={
            "provreq.kueue.x-k8s.io/ValidUntilSeconds": "60",
            labels.ADMISSION_GATED_BY: "example.com/gate",
            "other": "x",
        },
        labels={
            labels.QUEUE_NAME: "queue",
            labels.PRIORITY_CLASS: "high",
            labels.MAX_EXEC_TIME: "90",
        },
    )
    assert ADAPTER.workload_manifest(live) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": workload_name(JOB, "train", "job-uid-1"),
            "namespace": "team-a",
            "labels": {labels.JOB_UID: "job-uid-1"},
            "annotations": {
                "provreq.kueue.x-k8s.io/ValidUntilSeconds": "60",
                labels.ADMISSION_GATED_BY: "example.com/gate",
            },
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": "train",
                    "uid": "job-uid-1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "podSets": ADAPTER.pod_sets(live),
            "queueName": "queue",
            "active": True,
            "priorityClassRef": {
                "group": "kueue.x-k8s.io",
                "kind": "WorkloadPriorityClass",
                "name": "high",
            },
            "maximumExecutionTimeSeconds": 90,
        },
    }


def test_priority_class_of_the_pods_is_used_without_a_label() -> None:
    live = job({"template": template(priorityClassName="pods")})
    assert ADAPTER.workload_manifest(live)["spec"]["priorityClassRef"] == {
        "group": "scheduling.k8s.io",
        "kind": "PriorityClass",
        "name": "pods",
    }
    assert "priorityClassRef" not in ADAPTER.workload_manifest(job())["spec"]


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "1e9", "٣"])
def test_an_unreadable_time_limit_is_no_limit(text: str) -> None:
    live = job(labels={labels.MAX_EXEC_TIME: text})
    assert "maximumExecutionTimeSeconds" not in ADAPTER.workload_manifest(live)["spec"]


def workload_of(live: Manifest, **admission: Any) -> Manifest:
    workload = ADAPTER.workload_manifest(live)
    if admission:
        workload["status"] = {"admission": {"podSetAssignments": [{"name": "main", **admission}]}}
    return workload


def memory(text: str) -> Manifest:
    changed = template()
    changed["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": text}}
    return changed


@pytest.mark.parametrize(
    ("edited", "same"),
    [
        (job(), True),
        (job({"parallelism": 2}), False),
        (job(uid="another"), False),
        (job(labels={labels.MAX_EXEC_TIME: "9"}), False),
        (job(annotations={labels.MIN_PARALLELISM: "1"}), False),
        (job({"template": template(nodeSelector={"a": "b"})}), True),
        (job({"template": template({"labels": {"new": "x"}})}), True),
        (job({"template": template(tolerations=[{"key": "a"}])}), False),
        (job({"template": template(initContainers=[{"name": "i"}])}), False),
        (job({"template": memory("1024Mi")}), True),
        (job({"template": memory("1073741824")}), True),
        (job({"template": memory("1025Mi")}), False),
    ],
)
def test_equivalence_of_a_waiting_workload(edited: Manifest, same: bool) -> None:
    assert ADAPTER.equivalent(edited, workload_of(job())) is same


SMALLER = {labels.MIN_PARALLELISM: "1"}


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ({"suspend": False, "parallelism": 2}, True),
        ({"suspend": False, "parallelism": 3}, False),
        ({"suspend": True, "parallelism": 3}, True),
        ({"suspend": True, "parallelism": 1}, False),
        (
            {
                "suspend": False,
                "parallelism": 2,
                "template": template(tolerations=[{"key": "of-a-flavor"}]),
            },
            True,
        ),
    ],
)
def test_equivalence_of_an_admitted_workload_of_fewer_pods(spec: Manifest, same: bool) -> None:
    whole = workload_of(job(annotations=SMALLER), count=2)
    assert ADAPTER.equivalent(job(spec, annotations=SMALLER), whole) is same


def test_a_job_of_one_size_that_was_admitted_with_what_is_left_is_still_the_same() -> None:
    assert ADAPTER.equivalent(job({"suspend": False}), workload_of(job(), count=2))
    assert not ADAPTER.equivalent(job({"suspend": False, "parallelism": 2}), workload_of(job()))


def test_an_unreadable_quantity_does_not_break_the_comparison() -> None:
    odd = job({"template": memory("lots")})
    assert ADAPTER.equivalent(odd, workload_of(odd))
    assert not ADAPTER.equivalent(odd, workload_of(job()))

"""What does the adapter read from a batch Job?"""

from typing import Any

import pytest

from app.core.manifests import Manifest
from app.jobs import labels
from app.jobs.batch_job import BatchJobAdapter
from tests.unit.jobs.cluster import job, settled, template

ADAPTER = BatchJobAdapter()
MIN = labels.MIN_PARALLELISM


def with_status(**status: Any) -> Manifest:
    return {**job({"suspend": False}), "status": status}


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"parallelism": 4, "completions": 2}, 2),
        ({"parallelism": 2, "completions": 5}, 2),
        ({"parallelism": None, "completions": 7}, 1),
        ({"parallelism": None, "completions": None}, 1),
        ({"parallelism": 6, "completions": None}, 6),
        ({"parallelism": 0, "completions": None}, 0),
    ],
)
def test_counts_the_pods_that_run_at_once(spec: Manifest, count: int) -> None:
    assert ADAPTER.pod_sets(job(spec))[0]["count"] == count


def test_pod_set_is_the_template_without_the_controllers_labels() -> None:
    live = job(
        {
            "template": template(
                {
                    "labels": {
                        "app": "x",
                        "controller-uid": "u",
                        "batch.kubernetes.io/controller-uid": "u",
                        "job-name": "train",
                        "batch.kubernetes.io/job-name": "train",
                    },
                    "annotations": {"a": "b"},
                }
            )
        }
    )
    before = live["spec"]["template"]["metadata"]["labels"].copy()
    assert ADAPTER.pod_sets(live) == [
        {
            "name": "main",
            "count": 3,
            "template": template({"labels": {"app": "x"}, "annotations": {"a": "b"}}),
        }
    ]
    assert live["spec"]["template"]["metadata"]["labels"] == before


def test_pod_set_carries_partial_admission_and_topology() -> None:
    live = job(
        {
            "completionMode": "Indexed",
            "template": template({"annotations": {labels.REQUIRED_TOPOLOGY: "rack"}}),
        },
        annotations={MIN: "2"},
    )
    entry = ADAPTER.pod_sets(live)[0]
    assert entry["minCount"] == 2
    assert entry["topologyRequest"] == {
        "required": "rack",
        "podIndexLabel": "batch.kubernetes.io/job-completion-index",
    }


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, (False, False, "")),
        (
            {"conditions": [{"type": "Complete", "status": "True", "message": "done"}]},
            (True, True, "done"),
        ),
        (
            {"conditions": [{"type": "Failed", "status": "True", "message": "boom"}]},
            (True, False, "boom"),
        ),
        ({"conditions": [{"type": "Complete", "status": "False"}]}, (False, False, "")),
        ({"conditions": [{"type": "FailureTarget", "status": "True"}]}, (False, False, "")),
    ],
)
def test_finished_only_by_complete_or_failed(
    status: Manifest, expected: tuple[bool, bool, str]
) -> None:
    facts = ADAPTER.facts(with_status(**status))
    assert (facts.finished, facts.succeeded, facts.message) == expected


@pytest.mark.parametrize(
    ("status", "active"),
    [({}, 0), ({"active": 2}, 2), ({"active": 1, "terminating": 2}, 3), ({"terminating": 1}, 1)],
)
def test_terminating_pods_still_count(status: Manifest, active: int) -> None:
    assert ADAPTER.facts(with_status(**status)).active == active


@pytest.mark.parametrize(
    ("spec", "status", "quiet"),
    [
        ({"suspend": True}, {}, False),
        ({"suspend": True}, {"conditions": [{"type": "Suspended", "status": "False"}]}, False),
        ({"suspend": True}, {"conditions": [{"type": "Suspended", "status": "True"}]}, True),
        (
            {"suspend": True},
            {"conditions": [{"type": "Suspended", "status": "True"}], "terminating": 1},
            False,
        ),
        ({"suspend": False}, {"conditions": [{"type": "Suspended", "status": "True"}]}, False),
    ],
)
def test_quiet_needs_the_controllers_word_and_no_pods(
    spec: Manifest, status: Manifest, quiet: bool
) -> None:
    assert ADAPTER.facts({**job(spec), "status": status}).quiet is quiet


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"ready": 2}, False),
        ({"ready": 3}, True),
        ({"ready": 1, "succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["p"]}}, True),
    ],
)
def test_ready_counts_what_ran_already(status: Manifest, ready: bool) -> None:
    assert ADAPTER.facts(with_status(**status)).ready is ready


@pytest.mark.parametrize(
    ("spec", "status", "reclaimable"),
    [
        ({"parallelism": 3, "completions": 6}, {"succeeded": 3}, ()),
        ({"parallelism": 3, "completions": 6}, {"succeeded": 4}, (("main", 1),)),
        ({"parallelism": 3, "completions": 3}, {"succeeded": 3}, (("main", 3),)),
        ({"parallelism": 5, "completions": 3}, {"succeeded": 1}, (("main", 1),)),
        ({"parallelism": 1, "completions": 3}, {"succeeded": 3}, ()),
        (
            {"parallelism": 3, "completions": 4, "completionMode": "Indexed"},
            {"completedIndexes": "0-1,9", "failedIndexes": "1,3", "succeeded": 2},
            (("main", 2),),
        ),
    ],
)
def test_reclaimable_pods(
    spec: Manifest, status: Manifest, reclaimable: tuple[tuple[str, int], ...]
) -> None:
    assert ADAPTER.facts({**job(spec), "status": status}).reclaimable == reclaimable


def test_identity_queue_and_marks() -> None:
    marks = {
        labels.MARKED_UID: "job-uid-1",
        labels.ATTEMPT: "4",
        labels.EPOCH: "7",
        labels.STOP: "3",
        labels.STOPPING: "4",
    }
    facts = ADAPTER.facts(job(annotations=marks, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert (facts.api_version, facts.kind, facts.namespace, facts.name) == (
        "batch/v1",
        "Job",
        "team-a",
        "train",
    )
    assert (facts.uid, facts.resource_version, facts.queue) == ("job-uid-1", "1", "queue")
    assert (facts.attempt, facts.epoch, facts.stopped_attempt) == (4, 7, 3)
    assert facts.stopping
    assert facts.deleting
    assert facts.suspended


def test_marks_copied_from_another_job_are_not_believed() -> None:
    copied = {labels.MARKED_UID: "another-uid", labels.ATTEMPT: "4", labels.EPOCH: "7"}
    facts = ADAPTER.facts(job(annotations=copied))
    assert (facts.attempt, facts.epoch) == (None, None)


def test_hash_ignores_admission_and_spelling_but_not_size() -> None:
    live = job()
    plain = ADAPTER.facts(live).spec_hash
    spelled = job({"template": template(tolerations=[{"key": "a"}], nodeSelector={"pool": "a"})})
    spelled["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1000m", "memory": "1024Mi"}
    }
    assert ADAPTER.facts(spelled).spec_hash == plain
    assert ADAPTER.facts(job({"parallelism": 2})).spec_hash != plain
    assert ADAPTER.facts(settled(live)).spec_hash == plain


def test_pods_are_found_by_the_jobs_uid() -> None:
    assert ADAPTER.pod_selector("u") == "batch.kubernetes.io/controller-uid=u"

"""Does the Job controller's plan follow from the Job and its pods alone?"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sandbox.batch import facts, indexes
from app.sandbox.batch.plan import Pace, Plan, plan
from app.sandbox.batch.rules import Rules
from app.sandbox.batch.tally import Memory
from app.sandbox.dialects.strategic import merged
from app.sandbox.nodes.room import summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FINALIZER = "batch.kubernetes.io/job-tracking"


def job(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    defaults = {
        "parallelism": 2,
        "completions": 2,
        "backoffLimit": 6,
        "suspend": False,
        "completionMode": "NonIndexed",
        "template": {"metadata": {}, "spec": {"restartPolicy": "Never"}},
    }
    metadata = {"name": "j", "namespace": "n", "uid": "job-uid"}
    return {"metadata": metadata, "spec": {**defaults, **spec}, "status": status or {}}


def pod(
    uid: str, phase: str = "Running", *, tracked: bool = True, node: str = "a"
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": uid,
        "uid": uid,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    if tracked:
        metadata["finalizers"] = [FINALIZER]
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}


def planned(a_job: dict[str, Any], *pods: dict[str, Any], memory: Memory | None = None) -> Plan:
    return plan(a_job, pods, memory or Memory(), NOW, pace=Pace(), rules=Rules())


def conditions(steps: Plan) -> list[str]:
    return [one["type"] for one in steps.status.get("conditions", [])]


def test_missing_pods_are_created() -> None:
    steps = planned(job(parallelism=3, completions=5), pod("a"))
    assert steps.create == (None, None)
    assert steps.status["active"] == 3
    assert steps.status["startTime"] == "2026-01-01T00:00:00Z"


def test_no_more_pods_than_completions_are_left() -> None:
    steps = planned(job({"succeeded": 4}, parallelism=3, completions=5))
    assert len(steps.create) == 1


def test_an_ended_pod_is_counted_once() -> None:
    done = pod("a", "Succeeded")
    first = planned(job(), done, pod("b"))
    assert first.status["succeeded"] == 1
    assert first.release == (done,)
    again = planned(job(first.status), done, pod("b"), memory=first.remember)
    assert again.status["succeeded"] == 1
    assert again.release == (done,), "until the finalizer is off"
    later = planned(job(first.status), pod("a", "Succeeded", tracked=False), pod("b"))
    assert later.status["succeeded"] == 1
    assert later.release == ()


def test_back_off_grows_with_failures_in_a_row() -> None:
    first = planned(job(parallelism=1, completions=1), pod("a", "Failed"))
    assert first.create == ()
    assert first.again_at == NOW + timedelta(seconds=10)
    memory = Memory(failures=2, last_failure_at=NOW - timedelta(seconds=19))
    second = planned(job({"failed": 2}, parallelism=1, completions=1), memory=memory)
    assert second.create == ()
    assert second.again_at == NOW + timedelta(seconds=1)
    memory = Memory(failures=2, last_failure_at=NOW - timedelta(seconds=20))
    assert planned(job({"failed": 2}, parallelism=1, completions=1), memory=memory).create == (
        None,
    )


def test_suspension_takes_the_easiest_pods_first() -> None:
    waiting = pod("c", "Pending", node="")
    steps = planned(job(suspend=True), pod("a"), waiting)
    assert [one["metadata"]["uid"] for one in steps.delete] == ["c", "a"]
    assert steps.status["terminating"] == 1, "one that runs nowhere is gone at once"
    assert conditions(steps) == ["Suspended"]


def test_failure_is_final_only_when_nothing_runs() -> None:
    failing = job({"startTime": "2026-01-01T00:00:00Z"}, backoffLimit=0)
    steps = planned(failing, pod("a", "Failed"), pod("b"))
    assert conditions(steps) == ["FailureTarget"]
    assert steps.status["failed"] == 2
    assert [one["metadata"]["uid"] for one in steps.delete] == ["b"]
    ended = planned(job(steps.status, backoffLimit=0), memory=steps.remember)
    assert conditions(ended) == ["FailureTarget", "Failed"]
    assert ended.status["failed"] == 2


@given(
    phases=st.lists(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]), max_size=6),
    parallelism=st.integers(0, 4),
    completions=st.none() | st.integers(0, 5),
    suspend=st.booleans(),
)
def test_a_plan_that_is_carried_out_leaves_nothing_to_plan(
    phases: list[str], parallelism: int, completions: int | None, suspend: bool
) -> None:
    """Level-triggered: the second plan writes, creates and deletes nothing."""
    spec: dict[str, Any] = {
        "parallelism": parallelism,
        "completions": completions,
        "suspend": suspend,
    }
    pods = [pod(f"p{number}", phase) for number, phase in enumerate(phases)]
    first = planned(job(**spec), *pods)
    deleted = {one["metadata"]["uid"] for one in first.delete}
    released = {one["metadata"]["uid"] for one in first.release}
    left = [
        pod(
            one["metadata"]["uid"],
            one["status"]["phase"],
            tracked=one["metadata"]["uid"] not in released,
        )
        for one in pods
        if one["metadata"]["uid"] not in deleted
    ]
    left += [pod(f"new{number}", "Pending", node="") for number, _ in enumerate(first.create)]
    second = planned(job(first.status, **spec), *left, memory=first.remember)
    assert (second.create, second.delete) == ((), ())
    if facts.finished({"status": second.status}):
        return  # nobody plans for a finished Job
    third = planned(job(second.status, **spec), *left, memory=second.remember)
    assert third.status == second.status
    assert third.happenings == ()


@pytest.mark.parametrize(
    ("text", "found"), [("", set()), ("3", {3}), ("1,3-5,7", {1, 3, 4, 5, 7}), ("0,1", {0, 1})]
)
def test_indexes_are_read_and_written(text: str, found: set[int]) -> None:
    assert indexes.parse(text) == found
    assert indexes.write(found) == text


@given(st.sets(st.integers(0, 200)))
def test_any_indexes_survive_being_written(found: set[int]) -> None:
    assert indexes.parse(indexes.write(found)) == found


def test_first_missing_indexes() -> None:
    assert indexes.first_missing({0, 2}, 5, 2) == (1, 3)
    assert indexes.first_missing({0, 1}, 2, 2) == ()


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (
            {"a": None, "b": {"y": 2}},
            {"b": {"x": 1, "y": 2}, "containers": [{"name": "m", "image": "i"}]},
        ),
        ({"b": {"$patch": "replace", "y": 2}}, {"b": {"y": 2}}),
        ({"b": {"$retainKeys": ["y"], "y": 2}}, {"b": {"y": 2}}),
        (
            {"containers": [{"name": "n", "image": "k"}, {"name": "m", "tty": True}]},
            {"containers": [{"name": "m", "image": "i", "tty": True}, {"name": "n", "image": "k"}]},
        ),
        ({"containers": [{"name": "m", "$patch": "delete"}]}, {"containers": []}),
        (
            {"containers": [{"$patch": "replace"}, {"name": "n"}]},
            {"containers": [{"name": "n"}]},
        ),
        (
            {
                "$setElementOrder/containers": [{"name": "n"}, {"name": "m"}],
                "containers": [{"name": "n"}],
            },
            {"containers": [{"name": "n"}, {"name": "m", "image": "i"}]},
        ),
        ({"args": ["z"]}, {"args": ["z"]}),
        ({"$deleteFromPrimitiveList/finalizers": ["f"]}, {"finalizers": []}),
        ({"finalizers": ["g"]}, {"finalizers": ["f", "g"]}),
    ],
)
def test_strategic_merge(patch: dict[str, Any], expected: dict[str, Any]) -> None:
    target = {
        "a": 1,
        "b": {"x": 1},
        "args": ["x", "y"],
        "finalizers": ["f"],
        "containers": [{"name": "m", "image": "i"}],
    }
    result = merged(target, patch)
    assert {name: result.get(name) for name in expected} == expected
    assert target["containers"] == [{"name": "m", "image": "i"}]
    assert target["b"] == {"x": 1}


def test_reasons_are_counted_and_sorted() -> None:
    assert summary(3, ["b", "a", "b"]) == "0/3 nodes are available: 1 a, 2 b."

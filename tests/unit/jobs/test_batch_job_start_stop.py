"""Does a batch Job start as admitted, stop in order, and end up exactly as its user wrote it?"""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.manifests import Manifest
from app.errors import Conflict
from app.jobs import labels
from app.jobs.adapter import StartInfo, StopInfo, StopStep
from app.jobs.batch_job import BatchJobAdapter
from app.jobs.podsets import CannotStart, PodSetStart
from tests.unit.jobs.cluster import NOW, Refused, job, settled, template, write

ADAPTER = BatchJobAdapter()


def admission(count: int = 3, *, attempt: int = 1, epoch: int = 1, **given_: Any) -> StartInfo:
    entry: dict[str, Any] = {
        "node_selector": {"pool": "gpu"},
        "labels": {labels.PODSET: "main"},
        "annotations": {labels.WORKLOAD: "w"},
        **given_,
    }
    pod_set = PodSetStart(name="main", count=count, **entry)
    return StartInfo(attempt=attempt, epoch=epoch, pod_sets=(pod_set,))


def started(live: Manifest, info: StartInfo) -> Manifest:
    for _ in range(3):
        patch = ADAPTER.start_patch(live, info)
        live = write(live, patch)
        if patch.final:
            return live
    pytest.fail("the start does not come to an end")


def stopped(live: Manifest, info: StopInfo) -> Manifest:
    """Drive a stop to its end, the Job controller settling after each write."""
    for _ in range(6):
        step = ADAPTER.stop_step(live, info)
        if step.done:
            return live
        live = settled(write(live, step.patch) if step.patch else live)
    pytest.fail("the stop does not come to an end")


def test_start_is_one_write_with_everything() -> None:
    patch = ADAPTER.start_patch(job(), admission(tolerations=({"key": "gpu"},), attempt=2, epoch=5))
    assert patch.final
    assert patch.subresource is None
    assert patch.body == {
        "metadata": {
            "uid": "job-uid-1",
            "resourceVersion": "1",
            "annotations": {
                labels.MARKED_UID: "job-uid-1",
                labels.ATTEMPT: "2",
                labels.EPOCH: "5",
                labels.STOPPING: None,
            },
        },
        "spec": {
            "suspend": False,
            "template": {
                "metadata": {
                    "labels": {labels.PODSET: "main"},
                    "annotations": {labels.WORKLOAD: "w"},
                },
                "spec": {"nodeSelector": {"pool": "gpu"}, "tolerations": [{"key": "gpu"}]},
            },
        },
    }


def test_start_keeps_tolerations_and_gates_and_adds_only_new_ones() -> None:
    mine = [{"key": "mine"}, {"key": "gpu"}]
    live = job({"template": template(tolerations=mine, schedulingGates=[{"name": "g"}])})
    info = admission(tolerations=({"key": "gpu"}, {"key": "new"}), scheduling_gates=("g", "h"))
    spec = started(live, info)["spec"]["template"]["spec"]
    assert spec["tolerations"] == [*mine, {"key": "new"}]
    assert spec["schedulingGates"] == [{"name": "g"}, {"name": "h"}]


@pytest.mark.parametrize(
    ("of_template", "info", "path"),
    [
        (
            template(nodeSelector={"pool": "cpu"}),
            admission(),
            "spec.template.spec.nodeSelector[pool]",
        ),
        (
            template({"labels": {labels.PODSET: "other"}}),
            admission(),
            f"spec.template.metadata.labels[{labels.PODSET}]",
        ),
        (
            template({"annotations": {labels.WORKLOAD: "other"}}),
            admission(),
            f"spec.template.metadata.annotations[{labels.WORKLOAD}]",
        ),
    ],
)
def test_a_key_with_another_value_is_a_permanent_error(
    of_template: Manifest, info: StartInfo, path: str
) -> None:
    with pytest.raises(CannotStart) as caught:
        ADAPTER.start_patch(job({"template": of_template}), info)
    assert [cause.path for cause in caught.value.causes] == [path]
    assert not caught.value.retryable


def test_a_key_with_the_same_value_is_no_conflict() -> None:
    live = started(job({"template": template(nodeSelector={"pool": "gpu"})}), admission())
    assert live["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "gpu"}


def test_start_clears_an_old_start_time_first() -> None:
    live = job()
    live["status"]["startTime"] = NOW
    patch = ADAPTER.start_patch(live, admission())
    assert (patch.subresource, patch.final) == ("status", False)
    assert started(live, admission())["spec"]["suspend"] is False


def test_partial_admission_lowers_parallelism_and_stop_gives_it_back() -> None:
    live = job(annotations={labels.MIN_PARALLELISM: "2"})
    original = ADAPTER.original(live)
    running = settled(started(live, admission(2)))
    assert running["spec"]["parallelism"] == 2
    assert running["spec"]["completions"] == 3
    back = stopped(running, StopInfo(attempt=1, epoch=1, original=original))
    assert back["spec"] == live["spec"]


def test_completions_follow_parallelism_when_asked_to() -> None:
    notes = {labels.MIN_PARALLELISM: "1", labels.COMPLETIONS_EQUAL_PARALLELISM: "true"}
    live = job({"completionMode": "Indexed"}, annotations=notes)
    running = started(live, admission(2))
    assert (running["spec"]["parallelism"], running["spec"]["completions"]) == (2, 2)


@pytest.mark.parametrize("count", [2, 4])
def test_a_job_edited_since_its_admission_is_not_started(count: int) -> None:
    with pytest.raises(Conflict):
        ADAPTER.start_patch(job(), admission(count))


def test_a_size_below_the_minimum_is_refused() -> None:
    with pytest.raises(Conflict):
        ADAPTER.start_patch(job(annotations={labels.MIN_PARALLELISM: "2"}), admission(1))


def test_stop_goes_through_three_writes_in_order() -> None:
    live = job()
    info = StopInfo(attempt=1, epoch=2, original=ADAPTER.original(live))
    running = settled(started(live, admission()))

    first = ADAPTER.stop_step(running, info)
    assert first.patch
    assert first.patch.body["spec"] == {"suspend": True}
    assert first.patch.body["metadata"]["annotations"][labels.STOP] == "1"
    suspending = write(running, first.patch)

    assert ADAPTER.stop_step(suspending, info) == ADAPTER.stop_step(
        settled(suspending, active=2), info
    )
    waiting = ADAPTER.stop_step(settled(suspending, active=2), info)
    assert (waiting.patch, waiting.done) == (None, False)

    quiet = settled(suspending)
    second = ADAPTER.stop_step(quiet, info)
    assert second.patch
    assert (second.patch.subresource, second.patch.body["status"]) == (
        "status",
        {"startTime": None},
    )
    cleared = write(quiet, second.patch)
    assert ADAPTER.facts(cleared).stopping

    third = ADAPTER.stop_step(cleared, info)
    assert third.patch
    restored = write(cleared, third.patch)
    assert restored["spec"] == live["spec"]
    assert not ADAPTER.facts(restored).stopping
    assert ADAPTER.stop_step(restored, info).done


def test_a_stop_of_a_job_already_suspended_still_moves_its_version() -> None:
    live = settled(job())
    info = StopInfo(attempt=1, epoch=1, original=ADAPTER.original(live))
    delayed = ADAPTER.start_patch(live, admission())
    after = stopped(live, info)
    with pytest.raises(Refused) as caught:
        write(after, delayed)
    assert caught.value.code == 409


def test_a_job_we_never_started_is_suspended_and_its_template_left_alone() -> None:
    live = settled(job({"suspend": False, "template": template(nodeSelector={"a": "b"})}))
    after = stopped(live, StopInfo(attempt=0, epoch=1, original=None))
    assert after["spec"] == {**live["spec"], "suspend": True}
    assert "startTime" not in after["status"]


def test_a_job_that_waits_for_its_first_admission_is_not_written_to() -> None:
    info = StopInfo(attempt=0, epoch=1, original=None)
    assert ADAPTER.stop_step(job(), info) == StopStep(done=True)
    leaving = {**job(), "status": {"terminating": 1}}
    assert ADAPTER.stop_step(leaving, info) == StopStep()


def test_an_edit_of_the_size_while_running_survives_the_stop() -> None:
    live = job()
    info = StopInfo(attempt=1, epoch=1, original=ADAPTER.original(live))
    running = settled(started(live, admission()))
    running["spec"]["parallelism"] = 6
    assert stopped(running, info)["spec"]["parallelism"] == 6


def test_stopping_a_finished_job_writes_nothing() -> None:
    live = job({"suspend": False})
    live["status"] = {"conditions": [{"type": "Complete", "status": "True"}], "terminating": 1}
    info = StopInfo(attempt=1, epoch=1, original=None)
    assert ADAPTER.stop_step(live, info).patch is None
    assert not ADAPTER.stop_step(live, info).done
    del live["status"]["terminating"]
    assert ADAPTER.stop_step(live, info).done


@pytest.mark.parametrize("marks", [{labels.EPOCH: "9"}, {labels.ATTEMPT: "9"}, {labels.STOP: "9"}])
def test_a_later_decision_is_never_overwritten(marks: dict[str, str]) -> None:
    live = job(annotations={labels.MARKED_UID: "job-uid-1", **marks})
    with pytest.raises(Conflict):
        ADAPTER.start_patch(live, admission(attempt=2, epoch=3))
    with pytest.raises(Conflict):
        ADAPTER.stop_step(live, StopInfo(attempt=2, epoch=3, original=None))


names = st.sampled_from(["a", "b", "pool", "c/d"])
texts = st.sampled_from(["x", "y", ""])
maps = st.dictionaries(names, texts, max_size=3)
tolerations = st.lists(
    st.fixed_dictionaries({"key": names}, optional={"effect": texts}), max_size=3
)


@st.composite
def templates(draw: st.DrawFn) -> Manifest:
    metadata = draw(
        st.none() | st.fixed_dictionaries({}, optional={"labels": maps, "annotations": maps})
    )
    spec = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "nodeSelector": maps,
                "tolerations": tolerations,
                "schedulingGates": st.lists(st.fixed_dictionaries({"name": names}), max_size=2),
                "affinity": st.just({"nodeAffinity": {}}),
            },
        )
    )
    result = template({}, **spec)
    if metadata is None:
        del result["metadata"]
    else:
        result["metadata"] = metadata
    return result


@st.composite
def infos(draw: st.DrawFn) -> StartInfo:
    return admission(
        draw(st.integers(1, 3)),
        node_selector=draw(maps),
        labels=draw(maps),
        annotations=draw(maps),
        tolerations=tuple(draw(tolerations)),
        scheduling_gates=tuple(draw(st.lists(names, max_size=2))),
    )


@given(templates(), infos(), st.booleans())
def test_stop_undoes_start_to_the_byte(
    of_template: Manifest, info: StartInfo, partial: bool
) -> None:
    live = job(
        {"template": of_template}, annotations={labels.MIN_PARALLELISM: "1"} if partial else {}
    )
    before = copy.deepcopy(live)
    original = json.loads(json.dumps(ADAPTER.original(live)))
    try:
        running = settled(started(live, info))
    except (CannotStart, Conflict):
        return
    back = stopped(running, StopInfo(attempt=1, epoch=1, original=original))
    assert live == before
    assert json.dumps(back["spec"], sort_keys=True) == json.dumps(before["spec"], sort_keys=True)


@given(templates(), infos(), st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_stop_survives_any_delay_of_the_controller(
    of_template: Manifest, info: StartInfo, settles: list[bool]
) -> None:
    """Whatever the order of our writes and the controller's, the stop ends, and only in a quiet restored job."""
    live = job({"template": of_template}, annotations={labels.MIN_PARALLELISM: "1"})
    original = ADAPTER.original(live)
    stop = StopInfo(attempt=1, epoch=1, original=original)
    try:
        now = started(live, info)
    except (CannotStart, Conflict):
        return
    for controller in [*settles, *[True] * 6]:
        step = ADAPTER.stop_step(now, stop)
        if step.done:
            break
        if step.patch:
            now = write(now, step.patch)
        if controller:
            now = settled(now)
    assert ADAPTER.stop_step(now, stop).done
    assert ADAPTER.facts(now).quiet
    assert now["spec"] == live["spec"]

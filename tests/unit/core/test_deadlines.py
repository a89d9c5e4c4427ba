"""One answer for all clocks of a workload."""

from datetime import datetime, timedelta

import pytest

from app.core import lifecycle
from app.core.deadlines import next_look_at
from app.core.manifests import Manifest
from app.core.policy import DEFAULT, PodsReady, Policy, Retention
from app.core.upkeep import advance
from tests.builders import NOW, cluster_queue, flavor, image, local_queue, workload
from tests.unit.core.test_lifecycle import admit, shown

PATIENT = Policy(pods_ready=PodsReady(timeout=timedelta(seconds=500)))
TIDY = Policy(
    retention=Retention(
        after_finished=timedelta(seconds=60), after_deactivated=timedelta(seconds=30)
    )
)
WORLD = image(flavor(), cluster_queue("cq", {"default": {"cpu": "4"}}), local_queue("main", "cq"))


def at(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def running(**more: object) -> Manifest:
    return lifecycle.admit(workload("w", **more), admit(), NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("manifest", "policy", "expected"),
    [
        (workload("w"), PATIENT, None),
        (running(), DEFAULT, None),
        (running(), PATIENT, at(500)),
        (running(maximumExecutionTimeSeconds=400), PATIENT, at(400)),
        (running(maximumExecutionTimeSeconds=600), PATIENT, at(500)),
        (lifecycle.evict(running(), "Preempted", "", NOW), PATIENT, None),
        (lifecycle.finish(running(), "Succeeded", "", NOW), PATIENT, None),
        (lifecycle.finish(running(), "Succeeded", "", NOW), TIDY, at(60)),
        (lifecycle.deactivate_now(workload("w"), "X", "x", NOW), TIDY, at(30)),
        (lifecycle.deactivate_now(workload("w"), "X", "x", NOW), DEFAULT, None),
        (lifecycle.deactivate_now(running(), "X", "x", NOW), TIDY, None),
        (lifecycle.evict_deactivated(workload("w", active=False), NOW), TIDY, None),
    ],
)
def test_the_earliest_of_its_deadlines(
    manifest: Manifest, policy: Policy, expected: datetime | None
) -> None:
    assert next_look_at(manifest, policy) == expected


def test_a_finished_workload_is_deleted_when_it_was_kept_long_enough() -> None:
    done = lifecycle.finish(running(), "Succeeded", "", NOW)
    assert advance(done, WORLD, at(59), TIDY) is done
    assert advance(done, WORLD, at(10**6), DEFAULT) is done

    dying = advance(done, WORLD, at(60), TIDY)
    assert dying["metadata"]["deletionTimestamp"] == "2026-01-01T12:01:00Z"
    assert advance(dying, WORLD, at(90), TIDY) is dying
    assert next_look_at(dying, TIDY) is None


def test_all_its_attempts_together_last_as_long_as_it_may_run() -> None:
    once = running(maximumExecutionTimeSeconds=100)
    stopped = lifecycle.release(lifecycle.evict(once, "Preempted", "", at(60)), at(70))
    assert stopped["status"]["accumulatedPastExecutionTimeSeconds"] == 70

    twice = lifecycle.admit(stopped, admit(), at(200))
    assert next_look_at(twice, DEFAULT) == at(230)


def test_a_workload_that_ran_out_of_time_has_all_of_it_again_when_it_is_reactivated() -> None:
    over = advance(running(maximumExecutionTimeSeconds=100), WORLD, at(100))
    stopped = lifecycle.release(over, at(105))
    assert "accumulatedPastExecutionTimeSeconds" not in stopped["status"]

    alive = advance({**stopped, "spec": {**stopped["spec"], "active": True}}, WORLD, at(200))
    again = lifecycle.admit(alive, admit(), at(300))
    assert advance(again, WORLD, at(399)) is again
    assert next_look_at(again, DEFAULT) == at(400)


def test_a_second_deactivation_of_a_running_workload_is_one_eviction() -> None:
    ours = lifecycle.deactivate_now(workload("w"), "X", "x", NOW)
    alive = advance({**ours, "spec": {**ours["spec"], "active": True}}, WORLD, at(10), TIDY)
    again = lifecycle.admit(alive, admit(), at(20))
    off = advance({**again, "spec": {**again["spec"], "active": False}}, WORLD, at(30), TIDY)

    assert shown(off)["Evicted"] == ("True", "Deactivated")
    assert advance(off, WORLD, at(40), TIDY) is off


def test_a_second_deactivation_by_a_person_is_no_longer_ours() -> None:
    ours = lifecycle.deactivate_now(workload("w"), "X", "x", NOW)
    alive = advance({**ours, "spec": {**ours["spec"], "active": True}}, WORLD, at(10), TIDY)
    assert shown(alive)["Requeued"] == ("True", "Reactivated")

    off = advance({**alive, "spec": {**alive["spec"], "active": False}}, WORLD, at(20), TIDY)
    assert shown(off)["Evicted"] == ("True", "Deactivated")
    assert next_look_at(off, TIDY) is None

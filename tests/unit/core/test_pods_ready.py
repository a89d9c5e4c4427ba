"""Readiness in four words, patience with an end, and tries that get rarer."""

from datetime import datetime, timedelta

import pytest

from app.core import lifecycle, pods_ready
from app.core.image import Image
from app.core.manifests import Manifest
from app.core.policy import PodsReady, Policy, Requeuing
from app.core.upkeep import advance
from tests.builders import NOW, cluster_queue, flavor, image, local_queue, workload
from tests.unit.core.test_lifecycle import admit, shown

RULES = PodsReady(timeout=timedelta(seconds=100), recovery_timeout=timedelta(seconds=30))


def at(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def world() -> Image:
    return image(
        flavor(), cluster_queue("cq", {"default": {"cpu": "4"}}), local_queue("main", "cq")
    )


def started() -> Manifest:
    return lifecycle.await_pods(lifecycle.admit(workload("w"), admit(), NOW), NOW)


def live(manifest: Manifest, seconds: int, rules: PodsReady = RULES) -> Manifest:
    """What upkeep makes of it at that time, and that it is content then."""
    policy = Policy(pods_ready=rules)
    done = advance(manifest, world(), at(seconds), policy)
    assert advance(done, world(), at(seconds), policy) is done
    return done


def again(manifest: Manifest, seconds: int) -> Manifest:
    """Stopped, and admitted once more at that time."""
    released = lifecycle.release(manifest, at(seconds - 1))
    return lifecycle.admit(lifecycle.requeue(released, "x", "x", at(seconds)), admit(), at(seconds))


def test_the_condition_tells_starting_running_losing_and_recovering_apart() -> None:
    seen = []
    manifest = started()
    for ready in (False, True, True, False, False, True, False):
        manifest = pods_ready.observe(manifest, ready=ready, now=at(1))
        seen.append(shown(manifest)["PodsReady"])

    assert seen == [
        ("False", "WaitForStart"),
        ("True", "Started"),
        ("True", "Started"),
        ("False", "WaitForRecovery"),
        ("False", "WaitForRecovery"),
        ("True", "Recovered"),
        ("False", "WaitForRecovery"),
    ]


def test_an_unchanged_observation_changes_nothing() -> None:
    ready = pods_ready.observe(started(), ready=True, now=at(1))
    assert pods_ready.observe(ready, ready=True, now=at(9)) is ready


@pytest.mark.parametrize("known", [True, False], ids=["observed", "never observed"])
def test_start_is_waited_for_from_admission_on(*, known: bool) -> None:
    manifest = lifecycle.admit(workload("w"), admit(), NOW)
    manifest = lifecycle.await_pods(manifest, at(50)) if known else manifest

    assert pods_ready.due_at(manifest, RULES) == at(100)
    assert live(manifest, 99) is manifest
    done = live(manifest, 100)
    assert shown(done)["Evicted"] == ("True", "PodsReadyTimeout")
    assert done["status"]["schedulingStats"]["evictions"] == [
        {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 1}
    ]
    assert done["status"]["requeueState"] == {"count": 1, "requeueAt": "2026-01-01T12:02:40Z"}
    assert "admission" in done["status"]  # the quota stays taken until the job has stopped


def test_recovery_is_waited_for_from_the_loss_on_or_for_ever() -> None:
    manifest = pods_ready.observe(started(), ready=True, now=at(10))
    assert pods_ready.due_at(manifest, RULES) is None
    manifest = pods_ready.observe(manifest, ready=False, now=at(200))

    assert pods_ready.due_at(manifest, RULES) == at(230)
    done = live(manifest, 230)
    assert done["status"]["schedulingStats"]["evictions"][0]["underlyingCause"] == "WaitForRecovery"
    assert pods_ready.due_at(manifest, PodsReady(recovery_timeout=None)) is None


def test_whoever_lost_its_quota_is_not_ready_any_more() -> None:
    manifest = pods_ready.observe(started(), ready=True, now=at(10))
    gone = lifecycle.release(lifecycle.evict(manifest, "Preempted", "", at(20)), at(21))
    assert shown(gone)["PodsReady"] == ("False", "WaitForStart")


def test_too_many_tries_deactivate_in_one_step_and_a_new_life_has_all_of_them() -> None:
    rules = PodsReady(timeout=timedelta(seconds=100), requeuing=Requeuing(limit=2))
    manifest = started()
    for round_ in range(2):
        manifest = live(manifest, 1000 * round_ + 100, rules)
        assert shown(manifest)["Evicted"] == ("True", "PodsReadyTimeout")
        manifest = again(manifest, 1000 * (round_ + 1))
    manifest = live(manifest, 2100, rules)

    assert manifest["spec"]["active"] is False
    assert shown(manifest)["Evicted"] == ("True", "DeactivatedDueToRequeuingLimitExceeded")
    assert "requeueState" not in manifest["status"]
    assert "DeactivationTarget" not in shown(manifest)

    stopped = lifecycle.release(manifest, at(2101))
    alive = live({**stopped, "spec": {**stopped["spec"], "active": True}}, 2200, rules)
    assert shown(alive)["Requeued"] == ("True", "Reactivated")
    manifest = live(lifecycle.admit(alive, admit(), at(3000)), 3100, rules)
    assert shown(manifest)["Evicted"] == ("True", "PodsReadyTimeout")
    assert manifest["status"]["requeueState"]["count"] == 1


def test_delays_double_up_to_the_longest_and_are_spread_a_little() -> None:
    rules = Requeuing()
    exact = [60, 120, 240, 480, 960, 1920, 3600, 3600]
    for count, seconds in enumerate(exact, start=1):
        found = pods_ready.delay(rules, count, "uid-w").total_seconds()
        assert seconds <= found <= min(seconds * 1.0001, 3600)
    assert pods_ready.delay(rules, 10**6, "uid-w") == timedelta(hours=1)
    assert pods_ready.delay(rules, 1, "uid-w") == pods_ready.delay(rules, 1, "uid-w")
    assert len({pods_ready.delay(rules, 5, f"uid-{n}") for n in range(20)}) > 10


def test_each_setting_works_without_the_others() -> None:
    for requeuing, count_before, reason in (
        (Requeuing(limit=1), 1, "DeactivatedDueToRequeuingLimitExceeded"),
        (Requeuing(), 10**4, "PodsReadyTimeout"),
        (Requeuing(first_delay_s=7, keeps_place=True), 0, "PodsReadyTimeout"),
        (Requeuing(first_delay_s=0), 0, "PodsReadyTimeout"),
    ):
        manifest = started()
        manifest["status"]["requeueState"] = {"count": count_before}
        rules = PodsReady(timeout=timedelta(seconds=100), requeuing=requeuing)
        assert shown(live(manifest, 100, rules))["Evicted"] == ("True", reason)

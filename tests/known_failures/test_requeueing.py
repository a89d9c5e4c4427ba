"""Section R: the way back into the line, and what is said on it."""

import json
from datetime import timedelta

import pytest

from app.core import lifecycle
from app.core.decisions import PendingReason
from app.core.manifests import Manifest
from app.core.metadata import stamp
from app.core.policy import PodsReady, Requeuing
from tests.known_failures.shorthand import FLAVOR, cq, w
from tests.laws.stage import Stage


def test_a_reactivated_workload_starts_a_new_life() -> None:
    """kueue#2174, #2219, #2220, #7768: count and date of its tries went with the deactivation."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4)).settle()
    worn = stage.find("Workload", "a1")
    later = stamp(stage.now + timedelta(hours=1))
    worn = {
        **worn,
        "status": {**worn["status"], "requeueState": {"count": 2, "requeueAt": later}},
    }
    given_up = lifecycle.deactivate(worn, "RequeuingLimitExceeded", "Too many tries", stage.now)

    stage.put(given_up).settle()
    assert stage.find("Workload", "a1")["spec"]["active"] is False
    assert "requeueState" not in stage.status("a1")
    assert (stage.running, stage.reason("a1")) == ([], "Deactivated")

    stage.edit("Workload", "a1", active=True).settle()
    assert stage.running == ["a1"]


def test_the_last_try_ends_in_deactivation_at_once() -> None:
    """kueue#2291: decided when the time is over, in one step, so that no requeue comes in between."""
    stage = _impatient(Requeuing(limit=1, first_delay_s=5))
    stage.advance(30).settle()
    assert (stage.running, stage.reason("a1")) == ([], "PendingEvaluation")
    stage.advance(10).settle()
    assert stage.running == ["a1"]

    stage.advance(30)

    assert stage.find("Workload", "a1")["spec"]["active"] is False
    assert (stage.holding, stage.waiting) == ([], [])
    assert stage.evictions("a1") == 2


SETTINGS: dict[str, tuple[Requeuing, int, bool]] = {
    "none": (Requeuing(), 60, True),
    "limit": (Requeuing(limit=2), 60, True),
    "no tries": (Requeuing(limit=0), 60, False),
    "delay": (Requeuing(first_delay_s=7), 7, True),
    "longest delay": (Requeuing(longest_delay_s=9), 9, True),
    "limit and delay": (Requeuing(limit=2, first_delay_s=7), 7, True),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_setting_works_without_the_others(setting: str) -> None:
    """kueue#2223, #2224."""
    rules, delay_s, comes_back = SETTINGS[setting]
    stage = _impatient(rules).advance(30).settle()
    assert stage.running == []

    stage.advance(delay_s - 5).settle()
    assert stage.running == []

    stage.advance(10).settle()
    assert stage.running == (["a1"] if comes_back else [])


def _impatient(rules: Requeuing) -> Stage:
    """One workload whose pods never get ready within half a minute."""
    patience = PodsReady(timeout=timedelta(seconds=30), requeuing=rules)
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4), patience=patience).settle()
    assert stage.running == ["a1"]
    return stage


@pytest.mark.parametrize("reason", ["PodsReadyTimeout", "AdmissionCheck"])
def test_a_back_off_lasts_as_long_as_it_says(reason: str) -> None:
    """The workload queues again behind its equals, and no wake-up in between shortens its wait."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4)).settle().add(w("a2", 4, t=1))
    old = stage.find("Workload", "a1")
    until = {"requeueState": {"count": 1, "requeueAt": stamp(stage.now + timedelta(seconds=60))}}
    stage.put({**old, "status": {**old["status"], **until}}).evict("a1", reason).settle()
    assert stage.running == ["a2"]

    stage.finish("a2").settle().put(cq("a", 5)[0]).settle()
    assert stage.running == []

    stage.advance(60).settle()
    assert stage.running == ["a1"]


@pytest.mark.parametrize("check", ["Retry", "Rejected"])
def test_a_check_that_says_no_gives_the_reservation_back(check: str) -> None:
    """kueue#6301, #3323, #6035: Retry starts over after its delay, Rejected switches the workload off."""
    stage = Stage(
        FLAVOR,
        _check("site"),
        cq("a", 4, admissionChecksStrategy={"admissionChecks": [{"name": "site"}]}),
        w("a1", 4),
    ).cycle()
    assert (stage.holding, stage.reason("a1")) == (["a1"], None)

    stage.put(_answered(stage.find("Workload", "a1"), check, requeueAfterSeconds=30)).settle()
    assert (stage.holding, stage.used("a")) == ([], 0)
    assert [one["state"] for one in stage.status("a1")["admissionChecks"]] == ["Pending"]
    if check == "Rejected":
        assert stage.find("Workload", "a1")["spec"]["active"] is False
        stage.edit("Workload", "a1", active=True)
    else:
        stage.advance(31)
    stage.settle()
    assert stage.holding == ["a1"]

    stage.put(_answered(stage.find("Workload", "a1"), "Ready"))
    assert lifecycle.is_true(stage.status("a1"), "Admitted")


def _check(name: str) -> Manifest:
    active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    return {
        "kind": "AdmissionCheck",
        "metadata": {"name": name},
        "status": {"conditions": [active]},
    }


def _answered(manifest: Manifest, state: str, **more: int) -> Manifest:
    checks = [
        {**one, "state": state, "message": "said so", **more}
        for one in manifest["status"]["admissionChecks"]
    ]
    return {**manifest, "status": {**manifest["status"], "admissionChecks": checks}}


def test_a_thousand_rounds_say_no_more_than_one() -> None:
    """kueue#6875, #4195, #12090: no text quotes the one before."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4)).settle()
    manifest, now = stage.find("Workload", "a1"), stage.now
    admission = manifest["status"]["admission"]
    decision = Stage(FLAVOR, cq("a", 4), w("a1", 4)).cycle().last.admissions[0]
    sizes = set()
    for _ in range(1000):
        manifest = lifecycle.evict(manifest, "NodeFailures", "The node is gone", now)
        manifest = lifecycle.release(manifest, now)
        manifest = lifecycle.pending(manifest, PendingReason.WAITING_FOR_QUOTA, "No room", now)
        manifest = lifecycle.admit(manifest, decision, now)
        told = {**manifest["status"], "schedulingStats": None}
        sizes.add(len(json.dumps(told)))

    assert len(sizes) == 1
    assert manifest["status"]["admission"] == admission
    assert manifest["status"]["schedulingStats"]["evictions"] == [
        {"reason": "NodeFailures", "underlyingCause": "", "count": 1000}
    ]


@pytest.mark.parametrize("text", ["x" * 200_000, "é" * 100_000, "🦆" * 60_000])
def test_a_message_is_cut_to_what_the_api_takes(text: str) -> None:
    """kueue#12090: in bytes, and never through the middle of a letter."""
    manifest = lifecycle.pending(w("a1", 1), PendingReason.MISCONFIGURED, text, Stage(FLAVOR).now)

    message = manifest["status"]["conditions"][0]["message"]

    assert 32_000 < len(message.encode()) <= 32_768
    assert text.startswith(message)


def test_an_obstacle_is_forgotten_once_it_is_gone() -> None:
    """kueue#13875: what was said while it waited is no reason of anything later."""
    stage = Stage(FLAVOR, cq("a", 1), w("a1", 2)).settle()
    assert "insufficient quota" in stage.message("a1")

    stage.put(cq("a", 2)[0]).settle()
    assert "insufficient" not in json.dumps(stage.status("a1"))

    stage.evict("a1", "NodeFailures")
    assert "insufficient" not in json.dumps(stage.status("a1"))

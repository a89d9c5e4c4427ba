"""Two phases: quota first, then what others say about it."""

from datetime import timedelta

from app.core import lifecycle
from app.core.image import Image
from app.core.manifests import Manifest
from app.core.upkeep import advance
from tests.builders import NOW, cluster_queue, flavor, image, local_queue, workload
from tests.unit.core.test_lifecycle import admit, shown

LATER = NOW + timedelta(seconds=100)


def world(*rules: Manifest) -> Image:
    quota = {"default": {"cpu": "4"}, "spot": {"cpu": "4"}}
    strategy = {"admissionChecks": list(rules)}
    return image(
        flavor(),
        flavor("spot"),
        cluster_queue("cq", quota, admissionChecksStrategy=strategy),
        local_queue("main", "cq"),
    )


BUDGET = {"name": "budget"}
BOTH = {"name": "both", "onFlavors": ["spot", "default"]}
ON_SPOT = {"name": "on-spot", "onFlavors": ["spot"]}
ON_DEFAULT = {"name": "on-default", "onFlavors": ["default"]}
ALL = world(BUDGET, BOTH, ON_SPOT, ON_DEFAULT)


def settled(manifest: Manifest, of: Image = ALL) -> Manifest:
    done = advance(manifest, of, LATER)
    assert advance(done, of, LATER) is done
    return done


def reserved(*checks: str) -> Manifest:
    """Holds quota of the flavor `default`."""
    return lifecycle.admit(workload("w"), admit(*checks), NOW)


def says(manifest: Manifest, name: str, state: str, **more: object) -> Manifest:
    """As a check's controller writes it."""
    checks = [
        {**one, "state": state, "lastTransitionTime": "2026-01-01T12:00:30Z", **more}
        if one["name"] == name
        else one
        for one in manifest["status"]["admissionChecks"]
    ]
    return {**manifest, "status": {**manifest["status"], "admissionChecks": checks}}


def states(manifest: Manifest) -> dict[str, str]:
    return {one["name"]: one["state"] for one in manifest["status"].get("admissionChecks") or ()}


def test_before_a_reservation_only_checks_for_every_flavor_are_listed() -> None:
    assert states(settled(workload("w"))) == {"budget": "Pending", "both": "Pending"}


def test_with_one_those_of_the_assigned_flavors_are() -> None:
    done = settled(says(reserved("budget", "on-spot"), "budget", "Ready"))
    assert states(done) == {"budget": "Ready", "both": "Pending", "on-default": "Pending"}


def test_the_last_ready_check_admits() -> None:
    manifest = settled(reserved("budget", "both", "on-default"))
    for name in ("budget", "both"):
        manifest = settled(says(manifest, name, "Ready"))
        assert "Admitted" not in shown(manifest)
    assert shown(settled(says(manifest, "on-default", "Ready")))["Admitted"] == (
        "True",
        "Admitted",
    )


def test_places_that_are_still_to_be_found_delay_admission() -> None:
    manifest = reserved("budget")
    assignment = manifest["status"]["admission"]["podSetAssignments"][0]
    assignment["delayedTopologyRequest"] = "Pending"
    manifest = settled(says(manifest, "budget", "Ready"), world(BUDGET))
    assert "Admitted" not in shown(manifest)


def test_a_check_that_a_queue_gets_later_does_not_stop_what_runs() -> None:
    running = reserved()
    assert settled(running) is running


def test_retry_evicts_and_holds_back_until_the_latest_date_asked_for() -> None:
    manifest = says(reserved("budget", "both"), "budget", "Retry", requeueAfterSeconds=300)
    manifest = says(manifest, "both", "Retry", requeueAfterSeconds=60)
    done = settled(manifest)

    assert shown(done)["Evicted"] == ("True", "AdmissionCheck")
    assert done["status"]["requeueState"] == {"requeueAt": "2026-01-01T12:05:30Z"}
    assert {one["state"] for one in done["status"]["admissionChecks"]} == {"Pending"}
    assert [one["retryCount"] for one in done["status"]["admissionChecks"]] == [1, 1]
    assert "admission" in done["status"]

    released = settled(lifecycle.release(done, LATER))
    assert shown(released)["Requeued"] == ("False", "AdmissionCheck")
    in_time = advance(released, ALL, NOW + timedelta(seconds=331))
    assert shown(in_time)["Requeued"] == ("True", "BackoffFinished")
    assert "requeueState" not in in_time["status"]


def test_retry_without_a_date_comes_back_as_soon_as_it_has_stopped() -> None:
    done = settled(says(reserved("budget"), "budget", "Retry"), world(BUDGET))
    released = settled(lifecycle.release(done, LATER), world(BUDGET))
    assert shown(released)["Requeued"] == ("True", "BackoffFinished")


def test_rejection_deactivates_also_what_runs() -> None:
    waiting = reserved("budget")
    running = settled(says(waiting, "budget", "Ready"), world(BUDGET))
    assert shown(running)["Admitted"][0] == "True"
    for manifest in (waiting, running):
        done = settled(says(manifest, "budget", "Rejected"), world(BUDGET))
        assert done["spec"]["active"] is False
        assert shown(done)["Evicted"] == ("True", "DeactivatedDueToAdmissionCheck")
        message = (lifecycle.condition(done["status"], "Evicted") or {})["message"]
        assert message.endswith("admission check(s): budget, were rejected")

        stopped = lifecycle.release(done, LATER)
        alive = settled({**stopped, "spec": {**stopped["spec"], "active": True}}, world(BUDGET))
        assert shown(alive)["Requeued"] == ("True", "Reactivated")
        assert states(alive) == {"budget": "Pending"}


def test_without_quota_nothing_has_to_stop_first() -> None:
    listed = settled(workload("w"), world(BUDGET))

    retried = says(listed, "budget", "Retry", requeueAfterSeconds=300)
    held_back = settled(retried, world(BUDGET))
    assert shown(held_back)["Requeued"] == ("False", "AdmissionCheck")
    assert states(held_back) == {"budget": "Pending"}

    rejected = settled(says(listed, "budget", "Rejected"), world(BUDGET))
    assert shown(rejected)["Evicted"] == ("True", "DeactivatedDueToAdmissionCheck")
    assert shown(rejected)["Requeued"] == ("False", "Deactivated")

"""What controllers do without a scheduling decision, and that doing it twice changes nothing."""

from datetime import timedelta

import pytest

from app.core import lifecycle
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.upkeep import advance
from tests.builders import NOW, cluster_queue, flavor, image, local_queue, workload
from tests.unit.core.test_lifecycle import admit, shown

LATER = NOW + timedelta(seconds=100)


def world(*, queue: str = "None", local: str = "None") -> Image:
    return image(
        flavor(),
        cluster_queue("cq", {"default": {"cpu": "4"}}, stopPolicy=queue),
        local_queue("main", "cq", stopPolicy=local),
    )


def settled(manifest: Manifest, of: Image) -> Manifest:
    done = advance(manifest, of, LATER)
    assert advance(done, of, LATER) is done
    return done


def running(**more: object) -> Manifest:
    return lifecycle.admit(workload("w", **more), admit(), NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stops", "evicted"),
    [
        ({"queue": "HoldAndDrain"}, "ClusterQueueStopped"),
        ({"local": "HoldAndDrain"}, "LocalQueueStopped"),
        ({"queue": "Hold"}, None),
        ({"queue": "Hold", "local": "HoldAndDrain"}, "LocalQueueStopped"),
        ({"queue": "HoldAndDrain", "local": "Hold"}, None),
    ],
)
def test_draining_evicts_and_holding_does_not(stops: dict[str, str], evicted: str | None) -> None:
    done = settled(running(), world(**stops))

    assert shown(done).get("Evicted", (None, None))[1] == evicted


def test_holding_takes_a_reservation_back_that_was_not_admitted_yet() -> None:
    waiting_for_check = lifecycle.admit(workload("w"), admit("budget"), NOW)

    done = settled(waiting_for_check, world(queue="Hold"))

    assert shown(done) == {"QuotaReserved": ("False", "Suspended")}
    assert "admission" not in done["status"]


def test_a_drained_workload_queues_again_when_its_queue_does() -> None:
    released = lifecycle.release(settled(running(), world(queue="HoldAndDrain")), LATER)
    assert shown(released)["Requeued"] == ("False", "ClusterQueueStopped")
    assert settled(released, world(queue="Hold")) is released

    done = settled(released, world())

    assert shown(done)["Requeued"] == ("True", "ClusterQueueRestarted")
    assert shown(done)["QuotaReserved"] == ("False", "PendingEvaluation")


def test_deactivation_evicts_and_reactivation_lets_it_queue_again() -> None:
    off = {**running(), "spec": {**running()["spec"], "active": False}}
    done = settled(off, world())
    assert shown(done)["Evicted"] == ("True", "Deactivated")

    released = lifecycle.release(done, LATER)
    on = settled({**released, "spec": {**released["spec"], "active": True}}, world())
    assert shown(on)["Requeued"] == ("True", "Reactivated")


def test_a_workload_that_sluice_deactivated_can_be_reactivated_too() -> None:
    target = lifecycle.deactivate(running(), "RequeuingLimitExceeded", "Too many retries", NOW)
    done = settled(target, world())
    assert done["spec"]["active"] is False
    assert shown(done)["Evicted"] == ("True", "DeactivatedDueToRequeuingLimitExceeded")

    released = lifecycle.release(done, LATER)
    on = settled({**released, "spec": {**released["spec"], "active": True}}, world())
    assert shown(on)["Requeued"] == ("True", "Reactivated")


def test_back_off_ends_in_its_time() -> None:
    timed_out = lifecycle.release(lifecycle.evict(running(), "PodsReadyTimeout", "", NOW), NOW)
    timed_out["status"]["requeueState"] = {"count": 1, "requeueAt": "2026-01-01T12:01:40Z"}

    early = advance(timed_out, world(), NOW)
    assert early is timed_out

    done = settled(timed_out, world())
    assert shown(done)["Requeued"] == ("True", "BackoffFinished")
    assert done["status"]["requeueState"] == {"count": 1}


def test_time_is_up_when_the_maximum_is_spent() -> None:
    done = settled(running(maximumExecutionTimeSeconds=100), world())

    assert done["spec"]["active"] is False
    assert shown(done)["Evicted"] == ("True", "DeactivatedDueToMaximumExecutionTimeExceeded")
    assert "Evicted" not in shown(settled(running(maximumExecutionTimeSeconds=101), world()))


def test_a_new_value_of_its_priority_class_reaches_the_workload() -> None:
    of = world()
    of.put(parse({"kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 7}))
    reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}

    done = settled(workload("w", priority=1, priorityClassRef=reference), of)

    assert done["spec"]["priority"] == 7


def test_a_missing_queue_is_said_so() -> None:
    done = settled(workload("w", queue="nowhere"), world())

    condition = lifecycle.condition(done["status"], "QuotaReserved") or {}
    assert (condition["reason"], condition["message"]) == (
        "Misconfigured",
        "LocalQueue nowhere doesn't exist",
    )

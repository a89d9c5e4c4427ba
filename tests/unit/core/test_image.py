"""What follows from a change: usage, places in line, wake-ups."""

import pytest

from app.core import lifecycle
from app.core.decisions import Admit
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.resources import FlavorResource
from tests.builders import (
    NOW,
    admitted,
    cluster_queue,
    cohort,
    flavor,
    image,
    local_queue,
    run,
    workload,
)

CPU = FlavorResource("default", "cpu")


def busy() -> tuple[Image, dict[str, Manifest]]:
    """Queue `a` is full and has a parked workload; `b` of the same tree runs one, too."""
    manifests = {
        name: workload(name, queue, cpu=cpu, age=age)
        for name, queue, cpu, age in (
            ("runs-a", "a", "2", 9),
            ("waits-a", "a", "1", 1),
            ("runs-b", "b", "2", 9),
        )
    }
    of = image(
        flavor(),
        cohort("co", "root"),
        cluster_queue("a", {"default": {"cpu": "2"}}, cohort="co"),
        cluster_queue("b", {"default": {"cpu": "2"}}, cohort="root"),
        local_queue("a", "a"),
        local_queue("b", "b"),
        *manifests.values(),
    )
    for admission in run(of).admissions:
        _apply(of, manifests, admission)
    assert admitted(run(of)) == []
    assert [one.name for one in of.parked("a")] == ["waits-a"]
    return of, manifests


def _apply(of: Image, manifests: dict[str, Manifest], admission: Admit) -> None:
    manifest = lifecycle.admit(manifests[admission.name], admission, NOW)
    manifests[admission.name] = manifest
    of.put(parse(manifest))


def is_awake(of: Image) -> bool:
    return [one.name for one in of.pending("a")] == ["waits-a"]


def test_committing_what_was_decided_changes_nothing_twice() -> None:
    of, _ = busy()

    assert of.tree.queues()["a"].usage == {CPU: 2000}
    assert of.tree.queues()["b"].usage == {CPU: 2000}
    assert not is_awake(of)


def test_quota_given_back_anywhere_in_the_tree_wakes_it() -> None:
    of, manifests = busy()

    of.put(parse(lifecycle.finish(manifests["runs-b"], "Succeeded", "", NOW)))

    assert is_awake(of)
    assert admitted(run(of)) == ["waits-a"]


def test_an_evicted_workload_keeps_its_quota_until_it_is_released() -> None:
    of, manifests = busy()
    evicted = lifecycle.evict(manifests["runs-b"], "Preempted", "", NOW)

    of.put(parse(evicted))
    assert not is_awake(of)
    assert of.tree.queues()["b"].usage == {CPU: 2000}

    of.put(parse(lifecycle.release(evicted, NOW)))
    assert is_awake(of)
    assert [one.name for one in of.pending("b")] == ["runs-b"]


def test_reclaimed_pods_give_their_part_back() -> None:
    manifest = workload("w", "a", cpu="1", pods=4)
    of = image(
        flavor(), cluster_queue("a", {"default": {"cpu": "4"}}), local_queue("a", "a"), manifest
    )
    (decision,) = run(of).admissions
    manifest = lifecycle.admit(manifest, decision, NOW)

    status = {**manifest["status"], "reclaimablePods": [{"name": "main", "count": 3}]}
    of.put(parse({**manifest, "status": status}))

    assert of.tree.queues()["a"].usage == {CPU: 1000}


@pytest.mark.parametrize(
    "change",
    [
        cluster_queue("b", {"default": {"cpu": "3"}}, cohort="root"),
        cohort("root", quota={"default": {"cpu": "1"}}),
        flavor("default", nodeLabels={"new": "label"}),
    ],
    ids=["queue", "cohort", "flavor"],
)
def test_a_change_of_quota_wakes_the_whole_tree(change: Manifest) -> None:
    of, _ = busy()

    of.put(parse(change))

    assert is_awake(of)


def test_what_no_decision_can_see_wakes_nobody() -> None:
    of, manifests = busy()
    noise = lifecycle.set_condition(
        manifests["runs-b"], "PodsReady", status=True, reason="Started", message="", now=NOW
    )

    of.put(parse(noise))
    of.put(parse(cluster_queue("b", {"default": {"cpu": "2"}}, cohort="root")))

    assert not is_awake(of)


def test_a_stopped_local_queue_takes_its_workloads_out_and_puts_them_back() -> None:
    of, _ = busy()

    of.put(parse(local_queue("a", "a", stopPolicy="Hold")))
    assert (of.pending("a"), of.parked("a")) == ([], [])

    of.put(parse(local_queue("a", "a")))
    assert [one.name for one in of.parked("a")] == ["waits-a"]  # no room has appeared


def test_quota_from_a_stopped_local_queue_wakes_its_tree_unless_kueue_is_followed() -> None:
    for to_the_letter in (False, True):
        of, manifests = busy()
        of.to_the_letter = to_the_letter
        of.put(parse(local_queue("b", "b", stopPolicy="HoldAndDrain")))
        assert not is_awake(of)

        drained = lifecycle.evict(manifests["runs-b"], "LocalQueueStopped", "", NOW)
        of.put(parse(lifecycle.release(drained, NOW)))

        assert is_awake(of) is not to_the_letter


def test_a_workload_recreated_under_its_name_is_another_one() -> None:
    of, manifests = busy()
    again = workload("runs-b", "b", cpu="1")
    again["metadata"]["uid"] = "another"

    of.put(parse(again))

    assert of.tree.queues()["b"].usage == {CPU: 0}
    assert [one.uid for one in of.pending("b")] == ["another"]
    assert "uid-runs-b" not in of.holdings["b"]
    assert manifests["runs-b"]["metadata"]["uid"] == "uid-runs-b"

"""People stop queues, switch workloads off and delete what is in use, with kubectl."""

import json

import pytest

from tests.e2e.manifests import cluster_queue, flavor, job, local_queue
from tests.e2e.waiting import eventually
from tests.e2e.world import World, condition

NAMESPACED = {"clusterqueue": False, "localqueue": True, "workload": True}


def set_spec(world: World, kind: str, name: str, **spec: object) -> None:
    scope = ("-n", world.namespace) if NAMESPACED[kind] else ()
    patch = json.dumps({"spec": spec})
    world.front.kubectl("patch", kind, name, *scope, "--type=merge", "-p", patch)


def stop(world: World, kind: str, policy: str) -> None:
    name = world.mine("main") if kind == "clusterqueue" else "main"
    set_spec(world, kind, name, stopPolicy=policy)


KINDS = pytest.mark.parametrize(
    ("kind", "word"), [("clusterqueue", "ClusterQueue"), ("localqueue", "LocalQueue")]
)


@KINDS
def test_queue_on_hold_lets_nothing_new_in(world: World, kind: str, word: str) -> None:
    world.open_queue("2")
    world.submit(job("runs", "main", runs_s="forever"))
    world.until_running("runs")
    stop(world, kind, "Hold")
    world.submit(job("waits", "main"))
    world.until_waiting("waits")
    eventually(lambda: world.why("waits") == ("Suspended", f"The {word} is stopped"))
    assert not world.is_suspended("runs")
    assert world.marks("runs")["attempt"] == "1"
    stop(world, kind, "None")
    world.until_complete("waits")
    assert not world.is_suspended("runs")


@KINDS
def test_drained_queue_stops_what_runs(world: World, kind: str, word: str) -> None:
    world.open_queue("2")
    world.submit(job("runs", "main", runs_s="forever"))
    world.until_running("runs")
    stop(world, kind, "HoldAndDrain")
    world.until_waiting("runs")
    world.until_free(world.mine("main"))
    found = world.workload("runs")
    assert found is not None
    assert condition(found, "Evicted")["reason"] == f"{word}Stopped"
    assert condition(found, "Requeued")["status"] == "False"
    stop(world, kind, "None")
    world.until_running("runs")
    assert world.marks("runs")["attempt"] == "2"


def test_workload_switched_off_and_on(world: World) -> None:
    world.open_queue("1")
    world.submit(job("train", "main", runs_s="forever"))
    world.submit(job("next", "main"))
    world.until_running("train")
    found = world.workload("train")
    assert found is not None
    name = found["metadata"]["name"]
    set_spec(world, "workload", name, active=False)
    world.until_complete("next")  # there is room for it now
    off = world.front.find("workloads", name, world.namespace) or {}
    assert condition(off, "Evicted")["reason"] == "Deactivated"
    assert world.is_suspended("train")
    set_spec(world, "workload", name, active=True)
    world.until_running("train")
    assert world.marks("train")["attempt"] == "2"


def test_waiting_workload_switched_off_lets_others_pass(world: World) -> None:
    world.open_queue("1")
    world.submit(job("blocker", "main", runs_s="forever"))
    world.until_running("blocker")
    world.submit(job("off", "main"))
    world.submit(job("next", "main"))
    world.until_waiting("off", "next")
    found = world.workload("off")
    assert found is not None
    set_spec(world, "workload", found["metadata"]["name"], active=False)
    world.end_pods("blocker")
    world.until_complete("next")
    assert world.is_suspended("off")
    set_spec(world, "workload", found["metadata"]["name"], active=True)
    world.until_complete("off")


def test_deleted_workload_of_a_running_job_stops_and_requeues_it(world: World) -> None:
    queue = world.open_queue("1")
    world.submit(job("train", "main", runs_s="forever"))
    world.until_running("train")
    before = world.workload("train")
    assert before is not None
    # kubectl waits until it is gone, which is when the job has stopped
    world.front.kubectl(
        "delete", "workload", before["metadata"]["name"], "-n", world.namespace, "--timeout=20s"
    )
    world.until_running("train")
    after = world.workload("train")
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert world.marks("train")["attempt"] == "2"  # attempts of one job only grow
    uids = [span["uid"] for span in world.records.spans(queue) if span["ended_at"]]
    assert uids == [before["metadata"]["uid"]]


def test_deleted_workload_of_a_waiting_job_is_made_anew(world: World) -> None:
    world.submit(job("train", "main"))
    world.until_waiting("train")
    before = world.workload("train")
    assert before is not None
    name = before["metadata"]["name"]
    world.front.kubectl("delete", "workload", name, "-n", world.namespace, "--timeout=20s")
    after = eventually(lambda: world.workload("train"))
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    world.open_queue("1")
    world.until_complete("train")


def test_what_is_in_use_stays_until_it_is_free(world: World) -> None:
    queue, any_node = world.open_queue("1"), world.mine("any")
    world.submit(job("train", "main", runs_s="forever"))
    world.until_running("train")
    world.submit(job("late", "main"))
    world.until_waiting("late")
    kubectl = world.front.kubectl
    kubectl("delete", "resourceflavor", any_node, "--wait=false")
    kubectl("delete", "clusterqueue", queue, "--wait=false")

    def is_leaving(plural: str, name: str) -> bool:
        found = world.front.find(plural, name)
        return found is not None and "deletionTimestamp" in found["metadata"]

    def tells_why() -> bool:
        found = world.front.find("clusterqueues", queue) or {}
        return condition(found, "Active").get("reason") == "Terminating"

    eventually(tells_why)
    assert is_leaving("clusterqueues", queue)
    assert is_leaving("resourceflavors", any_node)
    assert not world.is_suspended("train")

    world.end_pods("train")
    world.until_complete("train")
    eventually(lambda: world.front.find("clusterqueues", queue) is None)
    eventually(lambda: world.front.find("resourceflavors", any_node) is None)
    assert world.is_suspended("late")  # nothing new was let in

    world.front.kubectl.apply(flavor(any_node), cluster_queue(queue, {any_node: "1"}))
    world.until_complete("late")


def test_deleted_local_queue_leaves_what_runs_alone(world: World) -> None:
    queue = world.open_queue("2")
    world.submit(job("train", "main", runs_s="forever"))
    world.until_running("train")
    world.front.kubectl("delete", "localqueue", "main", "-n", world.namespace, "--timeout=20s")
    world.submit(job("late", "main"))
    world.until_waiting("late")
    assert not world.is_suspended("train")
    world.end_pods("train")
    world.until_finished("train")
    world.until_free(queue)
    world.front.kubectl.apply(local_queue(world.namespace, "main", queue))
    world.until_complete("late")

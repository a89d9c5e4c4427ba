"""People do things to their Jobs while those wait or run: unsuspend, suspend, edit, delete, make anew."""

import json

from tests.cluster.admin import Object
from tests.e2e.manifests import PRIORITY, flavor, job, priority_class
from tests.e2e.waiting import eventually
from tests.e2e.watchman import Watchman, holds
from tests.e2e.world import World, condition

SUSPEND = {"spec": {"suspend": True}}
UNSUSPEND = {"spec": {"suspend": False}}
MAX_EXEC_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"


def test_waiting_job_unsuspended_by_hand_is_suspended_again(world: World) -> None:
    world.open_queue("1")
    world.submit(job("blocker", "main", runs_s="forever"))
    world.submit(job("train", "main", runs_s="forever"))
    world.until_running("blocker")
    world.until_waiting("train")
    for _ in range(
        2
    ):  # once more, since a stop that has been made already is told from one to make
        world.patch("train", UNSUSPEND)
        eventually(lambda: world.is_suspended("train") and not world.pods("train"))
    world.until_waiting("train")
    assert "attempt" not in world.marks("train")
    world.end_pods("blocker")
    world.until_running("train")
    assert world.marks("train")["attempt"] == "1"


def test_job_unsuspended_by_hand_as_room_comes_up_starts_properly(world: World) -> None:
    """Whoever is first: in the end it runs as admitted, with the node labels of its flavor."""
    world.open_queue("1")
    world.front.kubectl.apply(flavor(world.mine("any"), {"pool": "red"}))
    world.submit(job("blocker", "main", runs_s="forever"))
    world.submit(job("train", "main", runs_s="forever"))
    world.until_running("blocker")
    world.until_waiting("train")
    eventually(lambda: {pod["status"]["phase"] for pod in world.pods("blocker")} == {"Running"})
    world.patch("train", UNSUSPEND)
    world.end_pods("blocker")

    def settled() -> bool:
        pods = [pod["spec"].get("nodeSelector") for pod in world.pods("train")]
        return pods == [{"pool": "red"}]

    eventually(settled)
    world.until_running("train")


def test_running_job_suspended_by_its_owner_queues_again(world: World) -> None:
    queue = world.open_queue("1")
    world.submit(job("train", "main", runs_s="forever", stops_s="1.5"))
    pods = until_pods_run(world, "train")
    world.submit(job("other", "main", runs_s="forever"))
    world.until_waiting("other")
    world.patch("train", SUSPEND)

    name = workload_of(world, "train")["metadata"]["name"]
    until_released(world, queue, name, pods)
    # It is the older one, so it is its turn again.
    world.until_running("train")
    assert world.marks("train")["attempt"] == "2"
    assert world.marks("train")["stop"] == "1"
    (again,) = eventually(lambda: world.pods("train"))
    assert again["metadata"]["uid"] != pods[0]["metadata"]["uid"]
    assert [span["attempt"] for span in world.records.spans(queue)] == [1, 2]
    assert world.is_suspended("other")
    stopped = [note for reason, note in world.events("train") if reason == "Stopped"]
    assert stopped == ["The job was suspended by its owner"]


def test_quota_of_a_deleted_job_is_held_until_its_pods_are_gone(world: World) -> None:
    queue = world.open_queue("1")
    world.submit(job("train", "main", runs_s="forever", stops_s="1.5"))
    pods = until_pods_run(world, "train")
    name = workload_of(world, "train")["metadata"]["name"]
    world.submit(job("other", "main"))
    world.until_waiting("other")
    world.delete("train")
    until_released(world, queue, name, pods)
    world.until_complete("other")
    assert world.front.find("workloads", name, world.namespace) is None


def test_job_made_anew_under_its_name_is_another_job(world: World) -> None:
    queue = world.open_queue("1")
    world.submit(job("train", "main", runs_s="forever", stops_s="1"))
    pods = until_pods_run(world, "train")
    old = workload_of(world, "train")
    world.delete("train")
    world.cluster.wait_until_gone(world.path("train"))
    world.submit(job("train", "main"))
    until_released(world, queue, old["metadata"]["name"], pods)
    world.until_complete("train")
    world.until_finished("train")
    (left,) = world.workloads()
    assert left["metadata"]["uid"] != old["metadata"]["uid"]
    assert world.marks("train")["attempt"] == "1"
    assert len(world.records.spans(queue)) == 2


def test_waiting_job_deleted_with_its_end_held_up_does_not_start(world: World) -> None:
    """A finalizer keeps the Job there; nothing of it would ever run, so it must not be admitted."""
    queue = world.open_queue("1")
    world.submit(job("blocker", "main", runs_s="forever"))
    held = job("train", "main")
    held["metadata"]["finalizers"] = ["example.com/held"]
    world.submit(held)
    world.until_running("blocker")
    world.until_waiting("train")
    try:
        world.delete("train")
        eventually(lambda: world.workload("train") is None)
        world.end_pods("blocker")
        world.submit(job("next", "main"))
        world.until_complete("next")
        assert world.is_suspended("train")
        assert len(world.records.spans(queue)) == 2
    finally:
        world.patch("train", {"metadata": {"finalizers": None}})


def test_running_job_that_grows_queues_again_with_its_new_size(world: World) -> None:
    queue = world.open_queue("2")
    world.submit(job("train", "main", pods=1, completions=2, runs_s="forever"))
    world.until_running("train")
    world.patch("train", {"spec": {"parallelism": 2}})
    eventually(lambda: world.marks("train").get("attempt") == "2")
    world.until_running("train")
    eventually(lambda: len([pod for pod in world.pods("train") if holds(pod)]) == 2)
    open_now = [span["amount"] for span in world.records.spans(queue) if not span["ended_at"]]
    assert open_now == [2000]
    assert workload_of(world, "train")["spec"]["podSets"][0]["count"] == 2


def test_running_job_that_grows_beyond_its_quota_waits(world: World) -> None:
    queue = world.open_queue("1")
    world.submit(job("train", "main", pods=1, completions=2, runs_s="forever"))
    world.until_running("train")
    world.patch("train", {"spec": {"parallelism": 2}})
    world.until_waiting("train")
    eventually(lambda: not world.pods("train"))
    world.until_free(queue)
    eventually(lambda: "insufficient quota" in world.why("train")[1])


def test_waiting_job_takes_its_wishes_back(world: World) -> None:
    """A time limit and a priority class that are no longer on the job are no longer on its workload."""
    queue = world.open_queue("1")
    world.front.kubectl.apply(priority_class(world.mine("high"), 7))
    world.submit(job("blocker", "main", runs_s="forever"))
    world.until_running("blocker")
    wishful = job("train", "main", priority=world.mine("high"))
    wishful["metadata"]["labels"][MAX_EXEC_TIME] = "600"
    world.submit(wishful)
    world.until_waiting("train")
    spec = workload_of(world, "train")["spec"]
    assert (spec["maximumExecutionTimeSeconds"], spec["priority"]) == (600, 7)
    world.label("train", {MAX_EXEC_TIME: None, PRIORITY: None})

    def forgotten() -> bool:
        spec = workload_of(world, "train")["spec"]
        return "maximumExecutionTimeSeconds" not in spec and not spec.get("priority")

    eventually(forgotten)
    world.end_pods("blocker")
    world.until_complete("train")
    assert len(world.records.spans(queue)) == 2  # admitted once each


def test_job_that_cannot_be_queued_any_more_does_not_run(world: World) -> None:
    """Whoever makes his waiting Job senseless loses its place, and cannot start it by hand either."""
    queue = world.open_queue("1")
    world.submit(job("blocker", "main", runs_s="forever"))
    world.submit(job("train", "main", runs_s="forever"))
    world.until_running("blocker")
    world.until_waiting("train")
    annotate(world, "train", {SLICE_SIZE: "0"})
    eventually(lambda: not world.workload("train"))
    eventually(lambda: "ErrWorkloadCompose" in {reason for reason, _ in world.events("train")})
    world.patch("train", UNSUSPEND)
    eventually(lambda: world.is_suspended("train") and not world.pods("train"))

    annotate(world, "train", {SLICE_SIZE: None})
    world.until_waiting("train")
    world.end_pods("blocker")
    world.until_running("train")
    assert len(world.records.spans(queue)) == 2


def test_stopped_job_has_its_own_template_back(world: World) -> None:
    world.open_queue("1")
    queue = world.mine("main")
    tolerations = [{"key": "flavor", "operator": "Exists"}]
    world.front.kubectl.apply(flavor(world.mine("any"), {"pool": "red"}, tolerations=tolerations))
    bare = job("bare", "main", cpu="500m", runs_s="forever")
    own = job(
        "own",
        "main",
        cpu="500m",
        runs_s="forever",
        nodeSelector={"disk": "ssd"},
        tolerations=[{"key": "mine", "operator": "Exists"}],
    )
    before = {one["metadata"]["name"]: world.submit(one)["spec"] for one in (bare, own)}
    world.until_running("bare", "own")
    assert json.dumps(world.job("own")["spec"]) != json.dumps(before["own"])
    assert world.job("own")["spec"]["template"]["spec"]["nodeSelector"] == {
        "disk": "ssd",
        "pool": "red",
    }

    hold(world, queue, "HoldAndDrain")
    world.until_waiting("bare", "own")
    world.until_free(queue)
    for name in ("bare", "own"):
        assert json.dumps(world.job(name)["spec"]) == json.dumps(before[name])
        marks = world.marks(name)
        assert (marks["attempt"], marks["stop"]) == ("1", "1")
        assert "stopping" not in marks
        assert "startTime" not in world.job(name)["status"]

    hold(world, queue, "None")
    world.until_running("bare", "own")
    assert world.marks("own")["attempt"] == "2"
    assert world.marks("own")["stop"] == "1"


def test_pods_that_are_needed_no_more_make_room_for_others(world: World) -> None:
    world.open_queue("2")
    with Watchman(world.cluster, world.namespace, {"": 2}):
        world.submit(job("train", "main", pods=2, runs_s="forever"))
        first, _ = until_pods_run(world, "train")
        world.submit(job("other", "main", runs_s="1"))
        world.until_waiting("other")
        world.end_pod(first["metadata"]["name"])
        world.until_complete("other")
        assert not world.is_suspended("train")
        assert {pod["status"]["phase"] for pod in world.pods("train")} == {"Succeeded", "Running"}


def test_job_that_fails_gives_its_quota_back(world: World) -> None:
    queue = world.open_queue("1")
    failing = job("train", "main", runs_s="0.1")
    failing["spec"]["template"]["metadata"]["annotations"]["sluice.dev/exit-code"] = "3"
    world.submit(failing)
    world.cluster.wait_for_condition(world.path("train"), "Failed")
    world.until_finished("train")
    finished = condition(workload_of(world, "train"), "Finished")
    assert finished["reason"] == "Failed"
    assert "backoff limit" in finished["message"]
    world.until_free(queue)


def hold(world: World, queue: str, policy: str) -> None:
    patch = json.dumps({"spec": {"stopPolicy": policy}})
    world.front.kubectl("patch", "clusterqueue", queue, "--type=merge", "-p", patch)


def workload_of(world: World, name: str) -> Object:
    return eventually(lambda: world.workload(name))


def phases(world: World, name: str) -> set[str]:
    return {pod["status"].get("phase", "") for pod in world.pods(name)}


def annotate(world: World, name: str, annotations: dict[str, str | None]) -> None:
    """On the pod template."""
    template = {"metadata": {"annotations": annotations}}
    world.patch(name, {"spec": {"template": template}})


def until_released(world: World, queue: str, workload: str, pods: list[Object]) -> None:
    """Until the first attempt's quota is free, though a second may take it at once.

    The ledger is asked first, so pods that still hold something then are uncovered.
    """
    eventually(lambda: not world.records.attempt_is_open(queue, workload, attempt=1))
    covered = {pod["metadata"]["uid"] for pod in pods}
    left = [pod for pod in world.pods() if pod["metadata"]["uid"] in covered and holds(pod)]
    assert [pod["metadata"]["name"] for pod in left] == []


def until_pods_run(world: World, name: str) -> list[Object]:
    world.until_running(name)
    eventually(lambda: phases(world, name) == {"Running"})
    return world.pods(name)


def test_waiting_job_is_placed_by_what_its_template_says_now(world: World) -> None:
    """Edited to nodes that no flavor has, it is not admitted where it could not run; edited back, it is."""
    queue = world.open_queue("1")
    world.front.kubectl.apply(flavor(world.mine("any"), {"pool": "red"}))
    world.submit(job("blocker", "main", runs_s="forever"))
    world.submit(job("train", "main"))
    world.until_running("blocker")
    world.until_waiting("train")
    place(world, "train", "green")
    eventually(lambda: selector_of(world, "train") == {"pool": "green"})
    world.end_pods("blocker")
    eventually(lambda: "doesn't match node affinity" in world.why("train")[1])
    place(world, "train", "red")
    world.until_complete("train")
    assert len(world.records.spans(queue)) == 2


def place(world: World, name: str, pool: str) -> None:
    world.patch(name, {"spec": {"template": {"spec": {"nodeSelector": {"pool": pool}}}}})


def selector_of(world: World, name: str) -> dict[str, str]:
    """As its workload has it."""
    (pod_set,) = workload_of(world, name)["spec"]["podSets"]
    found: dict[str, str] = pod_set["template"]["spec"].get("nodeSelector", {})
    return found

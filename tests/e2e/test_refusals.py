"""Jobs that cannot run, and what their owners are told, in the workload and in Events on the Job."""

from tests.e2e.manifests import cluster_queue, flavor, job, local_queue
from tests.e2e.waiting import eventually
from tests.e2e.world import World, condition


def told(world: World, name: str, reason: str, words: str) -> str:
    """An Event on the job with this reason and these words in it."""

    def find() -> str | None:
        for found, note in world.events(name):
            if found == reason and words in note:
                return note
        return None

    return eventually(find)


def test_queue_that_names_nothing(world: World) -> None:
    world.submit(job("train", "nowhere"))
    words = "LocalQueue nowhere doesn't exist"
    eventually(lambda: words in world.why("train")[1])
    told(world, "train", world.why("train")[0], words)
    world.open_queue("1", name="nowhere")
    world.until_complete("train")


def test_queue_in_front_of_nothing(world: World) -> None:
    missing = world.mine("missing")
    world.front.kubectl.apply(local_queue(world.namespace, "main", missing))
    world.submit(job("train", "main"))
    words = f"ClusterQueue {missing} doesn't exist"
    eventually(lambda: words in world.why("train")[1])

    def is_known_to_lead_nowhere() -> bool:
        found = world.front.find("localqueues", "main", world.namespace) or {}
        return condition(found, "Active").get("reason") == "ClusterQueueDoesNotExist"

    eventually(is_known_to_lead_nowhere)
    world.front.kubectl.apply(
        flavor(world.mine("any")), cluster_queue(missing, {world.mine("any"): "1"})
    )
    world.until_complete("train")


def test_workload_that_can_never_fit_lets_others_pass(world: World) -> None:
    world.open_queue("2")
    world.submit(job("huge", "main", pods=3))
    world.submit(job("small", "main"))
    world.until_complete("small")
    reason, message = eventually(lambda: world.why("huge"))
    assert "insufficient quota for cpu in flavor" in message
    told(world, "huge", reason, "insufficient quota for cpu in flavor")
    assert world.is_suspended("huge")


def test_job_asks_for_nodes_that_no_flavor_has(world: World) -> None:
    world.open_queue("2")
    world.front.kubectl.apply(flavor(world.mine("any"), {"pool": "red"}))
    world.submit(job("train", "main", nodeSelector={"pool": "green"}))
    words = "doesn't match node affinity"
    eventually(lambda: words in world.why("train")[1])
    told(world, "train", world.why("train")[0], words)


def test_job_that_contradicts_its_admission_is_taken_out_of_line(world: World) -> None:
    """Its template claims a label that admission sets: it can never be started as it is."""
    queue = world.open_queue("1")
    contrary = job("train", "main", runs_s="forever")
    contrary["spec"]["template"]["metadata"]["labels"]["kueue.x-k8s.io/podset"] = "other"
    world.submit(contrary)
    note = told(world, "train", "FailedToStart", "contradicts its admission")
    assert "kueue.x-k8s.io/podset" in note

    def inactive() -> bool:
        found = world.workload("train") or {}
        return found.get("spec", {}).get("active") is False

    eventually(inactive)
    evicted = condition(world.workload("train") or {}, "Evicted")
    assert "contradicts its admission" in evicted["message"]
    world.until_free(queue)
    assert world.is_suspended("train")
    world.submit(job("next", "main"))
    world.until_complete("next")


def test_owner_is_told_of_start_and_stop(world: World) -> None:
    queue = world.open_queue("1")
    world.submit(job("train", "main", runs_s="forever"))
    told(world, "train", "Started", f"Admitted by clusterQueue {queue}")
    world.front.kubectl(
        "patch",
        "clusterqueue",
        queue,
        "--type=merge",
        "-p",
        '{"spec":{"stopPolicy":"HoldAndDrain"}}',
    )
    told(world, "train", "Stopped", "The ClusterQueue is stopped")

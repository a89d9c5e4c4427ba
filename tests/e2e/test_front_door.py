"""What happens to a Job as it is created, or as its queue label changes: the webhooks, asked by a real API server."""

import pytest

from tests.cluster.admin import ApiError
from tests.e2e.installation import Installation
from tests.e2e.manifests import QUEUE, flavor, job, local_queue
from tests.e2e.waiting import eventually
from tests.e2e.world import World


@pytest.mark.parametrize("suspend", [None, False])
def test_queued_job_is_suspended_as_it_is_created(world: World, suspend: bool | None) -> None:
    stored = world.submit(job("train", "nowhere", suspend=suspend))
    assert stored["spec"]["suspend"] is True
    world.until_waiting("train")
    assert world.pods() == []


def test_job_without_a_queue_is_left_alone(world: World) -> None:
    stored = world.submit(job("mine", None, suspend=False))
    assert stored["spec"]["suspend"] is False
    world.until_complete("mine")
    assert world.workloads() == []
    assert world.marks("mine") == {}


def test_default_queue_takes_jobs_that_name_none(world: World) -> None:
    world.open_queue("1", name="default")
    assert world.front.find("localqueues", "default", world.namespace)  # the door knows it, too
    stored = world.submit(job("first", None, suspend=None))
    assert stored["metadata"]["labels"][QUEUE] == "default"
    assert stored["spec"]["suspend"] is True
    world.until_complete("first")
    world.until_finished("first")


def test_queued_jobs_are_refused_while_nobody_is_at_the_door(
    world: World, service: Installation
) -> None:
    service.role("api").kill()
    with pytest.raises(ApiError) as refused:
        world.submit(job("early", "main"))
    assert refused.value.status == 500
    assert 'failed calling webhook "queued.jobs.sluice.dev"' in str(refused.value)
    assert not world.exists("early")
    world.submit(job("foreign", None, suspend=False))  # nobody else is held up
    eventually(world.front.is_ready)  # it is started again
    world.submit(job("later", "main"))
    world.until_waiting("later")
    world.until_complete("foreign")


def test_label_on_a_running_job_makes_it_wait_for_its_turn(world: World) -> None:
    queue = world.open_queue("1")
    world.submit(job("blocker", "main", runs_s="forever"))
    world.until_running("blocker")
    world.submit(job("late", None, suspend=False, runs_s="forever"))
    eventually(lambda: world.pods("late"))
    world.kubectl("label", "job", "late", "-n", world.namespace, f"{QUEUE}=main")
    world.until_waiting("late")
    eventually(lambda: not world.pods("late"))
    assert len([span for span in world.records.spans(queue) if not span["ended_at"]]) == 1


def test_label_on_a_running_job_starts_it_anew_where_it_belongs(world: World) -> None:
    """There is room, but its pods run where they like: it is stopped, and started as admitted."""
    world.open_queue("1")
    world.front.kubectl.apply(flavor(world.mine("any"), {"pool": "red"}))
    world.submit(job("late", None, suspend=False, runs_s="forever"))
    (before,) = eventually(lambda: world.pods("late"))
    world.kubectl("label", "job", "late", "-n", world.namespace, f"{QUEUE}=main")

    def moved() -> bool:
        pods = world.pods("late")
        return [pod["spec"].get("nodeSelector") for pod in pods] == [{"pool": "red"}]

    eventually(moved)
    assert before["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in world.pods("late")}
    world.until_running("late")
    world.end_pods("late")
    world.until_complete("late")
    world.until_finished("late")


@pytest.mark.parametrize("queue", ["other", None])
def test_queue_of_a_running_job_stays(world: World, queue: str | None) -> None:
    world.open_queue("1")
    world.submit(job("train", "main", runs_s="forever"))
    world.until_running("train")
    change = f"{QUEUE}={queue}" if queue else f"{QUEUE}-"
    refusal = world.kubectl.refused(
        "label", "job", "train", "-n", world.namespace, "--overwrite", change
    )
    assert f"cannot change from 'main' to {queue or ''!r} while the job runs" in refusal
    assert world.job("train")["metadata"]["labels"][QUEUE] == "main"
    assert not world.is_suspended("train")


def test_queue_must_be_a_name(world: World) -> None:
    with pytest.raises(ApiError, match="'Not_A_Name' is no name of a LocalQueue") as refused:
        world.submit(job("train", "Not_A_Name"))
    assert refused.value.status == 422
    assert not world.exists("train")


def test_waiting_job_moves_to_another_queue(world: World) -> None:
    world.open_queue("1")
    world.submit(job("blocker", "main", runs_s="forever"))
    world.submit(job("train", "main"))
    world.until_running("blocker")
    world.until_waiting("train")
    before = world.workload("train")
    assert before is not None
    other = world.open_queue("1", name="other")
    world.label("train", {QUEUE: "other"})
    world.until_complete("train")
    world.until_finished("train")
    after = world.workload("train")
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["queueName"] == "other"
    assert [span["amount"] for span in world.records.spans(other)] == [1000]


def test_waiting_job_leaves_its_queue_and_comes_back(world: World) -> None:
    world.submit(job("train", "main"))
    world.until_waiting("train")
    world.label("train", {QUEUE: None})
    eventually(lambda: not world.workloads())
    assert world.is_suspended("train")  # as its owner left it
    world.open_queue("1")
    world.label("train", {QUEUE: "main"})
    world.until_complete("train")
    world.until_finished("train")


def test_queues_of_other_namespaces_are_none_of_ours(world: World) -> None:
    elsewhere = world.mine("elsewhere")
    world.cluster.create_namespace(elsewhere)
    queue = world.open_queue("1")
    world.front.kubectl.apply(local_queue(elsewhere, "theirs", queue))
    world.submit(job("train", "theirs"))
    world.until_waiting("train")
    eventually(lambda: world.why("train")[1] == "LocalQueue theirs doesn't exist")

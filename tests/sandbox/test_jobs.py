"""Do Jobs live, end and refuse changes as on a real cluster?"""

from typing import Any

from app.sandbox.cluster import Sandbox
from tests.sandbox.client import (
    FAILING,
    FOREVER,
    JOBS,
    NODES,
    PODS,
    Client,
    condition,
    is_true,
    job,
)

TRAIN = f"{JOBS}/train"


def active(count: int) -> Any:
    return lambda found: found.get("status", {}).get("active", 0) == count


async def test_a_job_runs_its_pods_to_completion(client: Client) -> None:
    created = await client.create(JOBS, job(parallelism=2, completions=3))
    assert created["spec"]["backoffLimit"] == 6
    assert created["spec"]["suspend"] is False
    assert created["status"] == {}
    done = await client.until(TRAIN, is_true("Complete"))
    status = done["status"]
    assert status["succeeded"] == 3
    assert "active" not in status
    assert (status["ready"], status["terminating"]) == (0, 0)
    assert status["uncountedTerminatedPods"] == {}
    assert status["startTime"] <= status["completionTime"]
    assert condition(done, "SuccessCriteriaMet") == "True"
    pods = await client.items(PODS)
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * 3
    assert all("finalizers" not in pod["metadata"] for pod in pods)


async def test_pods_carry_the_marks_of_their_job(client: Client) -> None:
    created = await client.create(JOBS, job(annotations=FOREVER))
    await client.until(TRAIN, lambda found: found["status"].get("ready") == 1)
    (pod,) = await client.items(PODS)
    uid = created["metadata"]["uid"]
    labels = pod["metadata"]["labels"]
    assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == "train"
    assert labels["controller-uid"] == labels["batch.kubernetes.io/controller-uid"] == uid
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert pod["metadata"]["generateName"] == "train-"
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", uid, True)
    assert await client.items(PODS, labelSelector="job-name=train") == [pod]


async def test_an_indexed_job_numbers_its_pods(client: Client) -> None:
    await client.create(JOBS, job(completionMode="Indexed", completions=4, parallelism=3))
    done = await client.until(TRAIN, is_true("Complete"))
    assert done["status"]["completedIndexes"] == "0-3"
    pods = await client.items(PODS)
    key = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod["metadata"]["annotations"][key] for pod in pods) == list("0123")
    assert all(pod["spec"]["hostname"] == f"train-{pod['metadata']['labels'][key]}" for pod in pods)
    assert pods[0]["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


async def test_suspension_stops_pods_and_resumption_starts_new_ones(client: Client) -> None:
    await client.create(JOBS, job(parallelism=2, completions=2, annotations=FOREVER))
    running = await client.until(TRAIN, lambda found: found["status"].get("ready") == 2)
    assert "startTime" in running["status"]
    before = {pod["metadata"]["uid"] for pod in await client.items(PODS)}

    (await client.patch(TRAIN, {"spec": {"suspend": True}})).ok()
    held = await client.until(TRAIN, is_true("Suspended"))
    assert "active" not in held["status"]
    assert "startTime" not in held["status"]
    assert "failed" not in held["status"], "pods stopped by suspension have not failed"
    await client.until(PODS, lambda found: not found["items"])

    (await client.patch(TRAIN, {"spec": {"suspend": False}})).ok()
    again = await client.until(TRAIN, lambda found: found["status"].get("ready") == 2)
    assert condition(again, "Suspended") == "False"
    assert "startTime" in again["status"]
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in await client.items(PODS))


async def test_pods_that_stop_slowly_count_as_terminating(client: Client) -> None:
    annotations = {**FOREVER, "sluice.dev/stop-seconds": "10"}  # half a second at this speed
    await client.create(JOBS, job(annotations=annotations))
    await client.until(TRAIN, lambda found: found["status"].get("ready") == 1)
    (await client.patch(TRAIN, {"spec": {"suspend": True}})).ok()
    held = await client.until(TRAIN, is_true("Suspended"))
    assert held["status"]["terminating"] == 1
    assert len(await client.items(PODS)) == 1
    settled = await client.until(TRAIN, lambda found: found["status"]["terminating"] == 0)
    assert "active" not in settled["status"]
    assert await client.items(PODS) == []


async def test_parallelism_follows_while_running(client: Client) -> None:
    await client.create(JOBS, job(parallelism=1, completions=4, annotations=FOREVER))
    await client.until(TRAIN, active(1))
    patched = (await client.patch(TRAIN, {"spec": {"parallelism": 3}})).ok()
    assert patched["metadata"]["generation"] == 2
    await client.until(TRAIN, lambda found: found["status"].get("ready") == 3)
    (await client.patch(TRAIN, {"spec": {"parallelism": 1}})).ok()
    shrunk = await client.until(TRAIN, active(1))
    assert "failed" not in shrunk["status"]


async def test_an_indexed_job_grows_and_shrinks_in_tandem(client: Client) -> None:
    size: dict[str, Any] = {"completionMode": "Indexed", "parallelism": 1, "completions": 1}
    await client.create(JOBS, job(annotations=FOREVER, **size))
    await client.until(TRAIN, active(1))
    alone = await client.patch(TRAIN, {"spec": {"completions": 2}})
    assert alone.causes == [
        (
            "spec.completions",
            "Invalid value: 2: can only be modified in tandem with spec.parallelism",
        )
    ]
    (await client.patch(TRAIN, {"spec": {"completions": 2, "parallelism": 2}})).ok()
    await client.until(TRAIN, active(2))


async def test_failures_are_retried_up_to_the_limit(client: Client) -> None:
    await client.create(JOBS, job(annotations=FAILING, backoffLimit=2))
    failed = await client.until(TRAIN, is_true("Failed"))
    assert failed["status"]["failed"] == 3
    assert condition(failed, "FailureTarget") == "True"
    reasons = {one["reason"] for one in failed["status"]["conditions"]}
    assert reasons == {"BackoffLimitExceeded"}
    assert "completionTime" not in failed["status"]
    codes = [
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
        for pod in await client.items(PODS)
    ]
    assert codes == [1, 1, 1]


async def test_a_failed_job_stops_its_other_pods(client: Client) -> None:
    size: dict[str, Any] = {
        "completionMode": "Indexed",
        "parallelism": 2,
        "completions": 2,
        "backoffLimit": 0,
    }
    await client.create(JOBS, job(annotations=FOREVER, **size))
    await client.until(TRAIN, lambda found: found["status"].get("ready") == 2)
    first = (await client.items(PODS))[0]["metadata"]["name"]
    status = {"status": {"phase": "Failed", "conditions": []}}
    (await client.patch(f"{PODS}/{first}/status", status)).ok()
    failed = await client.until(TRAIN, is_true("Failed"))
    assert failed["status"]["failed"] == 2
    assert failed["status"]["terminating"] == 0
    phases = [pod["status"]["phase"] for pod in await client.items(PODS)]
    assert phases.count("Failed") == len(phases)


async def test_a_deleted_pod_counts_as_failed_and_is_replaced(client: Client) -> None:
    await client.create(JOBS, job(annotations=FOREVER))
    await client.until(TRAIN, lambda found: found["status"].get("ready") == 1)
    (pod,) = await client.items(PODS)
    (await client.call("DELETE", f"{PODS}/{pod['metadata']['name']}")).ok()
    await client.until(TRAIN, lambda found: found["status"].get("failed") == 1)
    await client.until(TRAIN, lambda found: found["status"].get("ready") == 1)
    (new,) = await client.items(PODS)
    assert new["metadata"]["uid"] != pod["metadata"]["uid"]


async def test_a_deadline_ends_a_job(client: Client) -> None:
    await client.create(JOBS, job(annotations=FOREVER, activeDeadlineSeconds=20))
    failed = await client.until(TRAIN, is_true("Failed"))
    assert {one["reason"] for one in failed["status"]["conditions"]} == {"DeadlineExceeded"}
    assert "active" not in failed["status"]


async def test_a_finished_job_goes_after_its_time_to_live(client: Client) -> None:
    await client.create(JOBS, job(ttlSecondsAfterFinished=10))
    await client.until(TRAIN, is_true("Complete"))
    await client.until_gone(TRAIN)
    await client.until(PODS, lambda found: not found["items"])


async def test_a_job_of_another_controller_is_left_alone(client: Client) -> None:
    await client.create(JOBS, job(managedBy="kueue.x-k8s.io/multikueue"))
    await client.create(JOBS, job("other"))
    await client.until(f"{JOBS}/other", is_true("Complete"))
    assert (await client.get(TRAIN))["status"] == {}


async def test_a_job_waits_for_room(client: Client, sandbox: Sandbox) -> None:
    await client.create(JOBS, job(requests={"nvidia.com/gpu": "8"}))
    pods = await client.until(
        PODS, lambda found: any(condition(one, "PodScheduled") for one in found["items"])
    )
    (pod,) = pods["items"]
    assert pod["status"]["phase"] == "Pending"
    (told,) = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert told["message"] == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    await sandbox.add_nodes(1, {"model": "big"}, {"nvidia.com/gpu": "8"})
    assert [node["metadata"]["name"] for node in await client.items(NODES)][-1] == "node-002"
    await client.until(TRAIN, is_true("Complete"))

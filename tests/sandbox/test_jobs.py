"""Do Jobs live, end and refuse changes as on a real cluster?"""

from typing import Any

import pytest

from app.sandbox.cluster import Sandbox
from tests.sandbox.client import (
    FAILING,
    FOREVER,
    JOBS,
    NODES,
    PODS,
    Client,
    client_of,
    condition,
    is_true,
    job,
)
from tests.sandbox.conftest import settings

TRAIN = f"{JOBS}/train"


def active(count: int) -> Any:
    return lambda found: found.get("status", {}).get("active", 0) == count


async def start_suspended(client: Client, **spec: Any) -> Any:
    await client.create(JOBS, job(suspend=True, **spec))
    return await client.until(TRAIN, is_true("Suspended"))


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


STARTABLE = {
    "metadata": {"labels": {"flavor": "a100"}, "annotations": {"placed": "yes"}},
    "spec": {
        "nodeSelector": {"model": "a100"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "schedulingGates": [{"name": "wait"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                    ]
                }
            }
        },
    },
}


async def test_a_suspended_template_takes_scheduling_directives(client: Client) -> None:
    await start_suspended(client)
    patched = (await client.patch(TRAIN, {"spec": {"template": STARTABLE}})).ok()
    spec = patched["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"model": "a100"}
    assert spec["affinity"] == STARTABLE["spec"]["affinity"]
    restored = dict.fromkeys(STARTABLE["spec"])
    (await client.patch(TRAIN, {"spec": {"template": {"spec": restored}}})).ok()


async def test_a_suspended_template_takes_resources_but_no_image(client: Client) -> None:
    await start_suspended(client)
    container = {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "2"}}}
    template = {"spec": {"containers": [container]}}
    (await client.patch(TRAIN, {"spec": {"template": template}})).ok()
    template = {"spec": {"containers": [{**container, "image": "other"}]}}
    refused = await client.patch(TRAIN, {"spec": {"template": template}})
    assert refused.status == 422
    (field, message) = refused.causes[0]
    assert field == "spec.template.spec"
    assert message.endswith("field is immutable")
    assert refused.body["message"].startswith('Job.batch "train" is invalid: ')


async def test_a_running_template_is_immutable(client: Client) -> None:
    await client.create(JOBS, job(annotations=FOREVER))
    await client.until(TRAIN, active(1))
    refused = await client.patch(
        TRAIN, {"spec": {"template": {"spec": {"nodeSelector": {"model": "a100"}}}}}
    )
    assert refused.status == 422
    assert [field for field, _ in refused.causes] == ["spec.template"]
    # Not even together with the suspension: the old object decides.
    both = {"suspend": True, "template": {"spec": {"nodeSelector": {"model": "a100"}}}}
    assert (await client.patch(TRAIN, {"spec": both})).status == 422


async def test_after_a_stop_the_template_is_free_when_the_condition_says_so(client: Client) -> None:
    await client.create(JOBS, job(annotations=FOREVER))
    await client.until(TRAIN, active(1))
    (await client.patch(TRAIN, {"spec": {"suspend": True}})).ok()
    await client.until(TRAIN, is_true("Suspended"))
    restored = {"spec": {"template": {"spec": {"nodeSelector": {"model": "t4"}}}}}
    (await client.patch(TRAIN, restored)).ok()


async def test_servers_before_1_36_want_the_start_time_cleared() -> None:
    async with Sandbox(settings(minor=34)) as sandbox, client_of(sandbox) as client:
        await client.create(JOBS, job(annotations=FOREVER))
        await client.until(TRAIN, active(1))
        early = await client.patch(f"{TRAIN}/status", {"status": {"startTime": None}})
        assert early.causes == [
            (
                "status.startTime",
                "Invalid value: null: field is immutable for unsuspended job once set",
            )
        ]
        (await client.patch(TRAIN, {"spec": {"suspend": True}})).ok()
        held = await client.until(TRAIN, is_true("Suspended"))
        assert "startTime" in held["status"], "these servers keep it"
        template = {"spec": {"template": {"spec": {"nodeSelector": {"model": "t4"}}}}}
        assert (await client.patch(TRAIN, template)).status == 422
        (await client.patch(f"{TRAIN}/status", {"status": {"startTime": None}})).ok()
        (await client.patch(TRAIN, template)).ok()
        resources = [
            {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "2"}}}
        ]
        larger = await client.patch(
            TRAIN, {"spec": {"template": {"spec": {"containers": resources}}}}
        )
        assert larger.status == 422, "mutable resources came with 1.36"


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"completions": 5}, "spec.completions", "Invalid value: 5: field is immutable"),
        (
            {"completionMode": "Indexed"},
            "spec.completionMode",
            'Invalid value: "Indexed": field is immutable',
        ),
        (
            {"parallelism": -1},
            "spec.parallelism",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            {"managedBy": "example.com/other"},
            "spec.managedBy",
            'Invalid value: "example.com/other": field is immutable',
        ),
    ],
)
async def test_what_of_a_spec_may_not_change(
    client: Client, change: dict[str, Any], field: str, message: str
) -> None:
    await start_suspended(client)
    refused = await client.patch(TRAIN, {"spec": change})
    assert refused.status == 422
    assert (field, message) in refused.causes
    assert (await client.get(TRAIN))["metadata"]["generation"] == 1


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
    size = {"completionMode": "Indexed", "parallelism": 1, "completions": 1}
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


@pytest.mark.parametrize(
    ("pod", "field", "message"),
    [
        (
            {"restartPolicy": "Always"},
            "spec.template.spec.restartPolicy",
            'Required value: valid values: "OnFailure", "Never"',
        ),
        ({"containers": []}, "spec.template.spec.containers", "Required value"),
    ],
)
async def test_what_a_new_job_may_not_be(
    client: Client, pod: dict[str, Any], field: str, message: str
) -> None:
    refused = await client.call("POST", JOBS, job(pod=pod))
    assert refused.status == 422
    assert refused.causes == [(field, message)]


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
    size = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "backoffLimit": 0}
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


async def test_status_is_guarded(client: Client) -> None:
    await client.create(JOBS, job(managedBy="kueue.x-k8s.io/multikueue"))
    now = "2026-01-01T00:00:00Z"
    done = {"type": "Complete", "status": "True"}
    bare = {"conditions": [done], "startTime": now, "completionTime": now}
    refused = await client.patch(f"{TRAIN}/status", {"status": bare})
    assert refused.causes == [
        (
            "status.conditions",
            "Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        )
    ]
    whole = {**bare, "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, done]}
    (await client.patch(f"{TRAIN}/status", {"status": {**whole, "succeeded": 1}})).ok()
    back = await client.patch(f"{TRAIN}/status", {"status": {"succeeded": 0}})
    assert back.causes == [
        ("status.succeeded", "Invalid value: 0: cannot decrease the succeeded counter")
    ]


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


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"parallelism": "two"}, "spec.parallelism"),
        ({"parallelism": True}, "spec.parallelism"),
        ({"suspend": "yes"}, "spec.suspend"),
        ({"template": []}, "spec.template"),
        ({"template": {"spec": {"containers": ["x"]}}}, "spec.template.spec.containers[0]"),
    ],
)
async def test_fields_of_another_type_cannot_be_read(
    client: Client, spec: dict[str, Any], field: str
) -> None:
    manifest = job()
    manifest["spec"] |= spec
    answer = await client.call("POST", JOBS, manifest)
    assert answer.status in (400, 422)
    assert field in answer.body["message"]
    assert "must be of type" in answer.body["message"]

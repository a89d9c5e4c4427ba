"""Which changes of a Job are refused, in which words, on which Kubernetes?"""

from typing import Any

import pytest

from app.sandbox.cluster import Sandbox
from tests.sandbox.client import (
    FOREVER,
    JOBS,
    Client,
    client_of,
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


STARTABLE: Any = {
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

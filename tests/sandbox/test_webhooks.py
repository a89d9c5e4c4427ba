"""Are admission webhooks asked, obeyed and given up on as a real API server does?"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.sandbox.cluster import Sandbox
from tests.sandbox.client import FOREVER, JOBS, PODS, Client, client_of, is_true, job
from tests.sandbox.conftest import settings
from tests.sandbox.hooks import Hooks, allow, denying, hooks_on_loopback, patching

MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SUSPEND = patching({"op": "replace", "path": "/spec/suspend", "value": True})


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    async with hooks_on_loopback() as served:
        yield served


async def mutate(client: Client, hooks: Hooks, name: str = "mutate", **changes: Any) -> None:
    await client.create(MUTATING, hooks.configuration("Mutating", name, f"/{name}", **changes))


async def validate(client: Client, hooks: Hooks, name: str = "validate", **changes: Any) -> None:
    await client.create(VALIDATING, hooks.configuration("Validating", name, f"/{name}", **changes))


async def test_a_mutation_is_stored_and_acted_on(client: Client, hooks: Hooks) -> None:
    hooks.answers["/mutate"] = SUSPEND
    await mutate(client, hooks)
    created = await client.create(JOBS, job(), fieldManager="tester")
    assert created["spec"]["suspend"] is True
    await client.until(f"{JOBS}/train", is_true("Suspended"))
    assert await client.items(PODS) == []

    (request,) = hooks.asked
    assert request["operation"] == "CREATE"
    assert request["resource"] == {"group": "batch", "version": "v1", "resource": "jobs"}
    assert request["kind"] == {"group": "batch", "version": "v1", "kind": "Job"}
    assert (request["namespace"], request["name"]) == ("default", "train")
    assert request["oldObject"] is None
    assert request["object"]["spec"]["suspend"] is False, "it sees defaults"
    assert request["userInfo"]["username"] == "kubernetes-admin"
    assert "system:masters" in request["userInfo"]["groups"]
    assert request["options"]["kind"] == "CreateOptions"
    assert request["options"]["fieldManager"] == "tester"
    assert request["dryRun"] is False


async def test_status_writes_and_controllers_pass_by_a_rule_for_jobs(
    client: Client, hooks: Hooks
) -> None:
    hooks.answers["/mutate"] = allow
    await mutate(client, hooks)
    await client.create(JOBS, job())
    await client.until(f"{JOBS}/train", is_true("Complete"))
    assert [request["operation"] for request in hooks.asked] == ["CREATE"]
    (await client.patch(f"{JOBS}/train", {"metadata": {"labels": {"a": "b"}}})).ok()
    assert [request["operation"] for request in hooks.asked] == ["CREATE", "UPDATE"]
    update = hooks.asked[-1]
    assert "a" not in update["oldObject"]["metadata"]["labels"]
    assert update["object"]["metadata"]["labels"]["a"] == "b"


async def test_pods_that_the_job_controller_creates_are_seen(client: Client, hooks: Hooks) -> None:
    gate = patching({"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "hold"}]})
    hooks.answers["/mutate"] = gate
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
    }
    await mutate(client, hooks, rules=[rule])
    await client.create(JOBS, job(annotations=FOREVER))
    pods = await client.until(PODS, lambda found: len(found["items"]) == 1)
    assert pods["items"][0]["spec"]["schedulingGates"] == [{"name": "hold"}]
    assert hooks.asked[0]["userInfo"]["username"].startswith("system:serviceaccount:kube-system:")


async def test_webhooks_run_in_the_order_of_their_names(client: Client, hooks: Hooks) -> None:
    hooks.answers["/a-first"] = patching(
        {"op": "add", "path": "/metadata/labels", "value": {"seen": "first"}}
    )
    hooks.answers["/b-second"] = patching(
        {"op": "replace", "path": "/metadata/labels/seen", "value": "both"}
    )
    await mutate(client, hooks, "b-second")
    await mutate(client, hooks, "a-first")
    created = await client.create(JOBS, job(suspend=True))
    assert created["metadata"]["labels"] == {"seen": "both"}


async def test_a_mutation_that_is_invalid_is_refused(client: Client, hooks: Hooks) -> None:
    hooks.answers["/mutate"] = patching({"op": "replace", "path": "/spec/parallelism", "value": -1})
    await mutate(client, hooks)
    refused = await client.call("POST", JOBS, job())
    assert refused.status == 422
    assert refused.causes[0][0] == "spec.parallelism"


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ({"message": "no queue"}, 400, ": no queue"),
        ({"code": 403, "reason": "Forbidden", "message": "not yours"}, 403, ": not yours"),
        ({"code": 200, "reason": "Strange"}, 400, ": Strange"),
        ({}, 400, " without explanation"),
    ],
)
async def test_a_denial_reaches_the_client(
    client: Client, hooks: Hooks, status: dict[str, Any], code: int, message: str
) -> None:
    hooks.answers["/validate"] = denying(**status)
    await validate(client, hooks)
    refused = await client.call("POST", JOBS, job())
    assert refused.status == refused.body["code"] == code
    assert refused.body["message"] == (
        f'admission webhook "validate.sluice.dev" denied the request{message}'
    )
    assert refused.body["reason"] == status.get("reason", "")
    assert await client.items(JOBS) == []


async def test_an_update_can_be_denied(client: Client, hooks: Hooks) -> None:
    hooks.answers["/validate"] = lambda request: {
        "allowed": request["object"]["spec"]["parallelism"] < 3
    }
    await validate(client, hooks)
    await client.create(JOBS, job(suspend=True))
    (await client.patch(f"{JOBS}/train", {"spec": {"parallelism": 2}})).ok()
    assert (await client.patch(f"{JOBS}/train", {"spec": {"parallelism": 3}})).status == 400
    assert (await client.get(f"{JOBS}/train"))["spec"]["parallelism"] == 2


async def test_a_deletion_can_be_denied(client: Client, hooks: Hooks) -> None:
    hooks.answers["/validate"] = denying(message="keep it")
    rule = {
        "operations": ["DELETE"],
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": ["*/*"],
    }
    await validate(client, hooks, rules=[rule])
    await client.create(JOBS, job(suspend=True))
    assert (await client.call("DELETE", f"{JOBS}/train")).status == 400
    assert hooks.asked[-1]["object"] is None
    assert hooks.asked[-1]["oldObject"]["metadata"]["name"] == "train"
    # A configuration itself is never shown to webhooks, or it could not be removed.
    (await client.call("DELETE", f"{VALIDATING}/validate")).ok()
    (await client.call("DELETE", f"{JOBS}/train")).ok()


async def test_a_webhook_that_is_down_counts_by_its_failure_policy(
    client: Client, hooks: Hooks
) -> None:
    down = {"url": "https://127.0.0.1:1/x", "caBundle": hooks.bundle}
    await validate(client, hooks, clientConfig=down)
    refused = await client.call("POST", JOBS, job(suspend=True))
    assert refused.status == 500
    assert refused.body["message"].startswith(
        'Internal error occurred: failed calling webhook "validate.sluice.dev": '
        'failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )
    ignore = {"webhooks": [{**hooks.configuration("", "validate", "/")["webhooks"][0]}]}
    ignore["webhooks"][0] |= {"clientConfig": down, "failurePolicy": "Ignore"}
    (await client.patch(f"{VALIDATING}/validate", ignore)).ok()
    await client.create(JOBS, job(suspend=True))


async def test_a_slow_webhook_times_out(client: Client, hooks: Hooks) -> None:
    hooks.answers["/validate"] = allow
    hooks.delay_s = 3
    await validate(client, hooks, timeoutSeconds=1)
    started = asyncio.get_running_loop().time()
    refused = await client.call("POST", JOBS, job())
    assert asyncio.get_running_loop().time() - started < 2.5
    assert refused.status == 500
    assert "context deadline exceeded" in refused.body["message"]


async def test_a_certificate_of_another_authority_is_not_believed(
    client: Client, hooks: Hooks
) -> None:
    async with hooks_on_loopback() as other:
        config = {"url": hooks.url + "/validate", "caBundle": other.bundle}
        hooks.answers["/validate"] = allow
        await validate(client, hooks, clientConfig=config)
        refused = await client.call("POST", JOBS, job())
    assert refused.status == 500
    assert "certificate verify failed" in refused.body["message"]
    assert hooks.asked == []


@pytest.mark.parametrize("effects", ["None", "NoneOnDryRun"])
async def test_a_dry_run_asks_harmless_webhooks(client: Client, hooks: Hooks, effects: str) -> None:
    hooks.answers["/mutate"] = SUSPEND
    await mutate(client, hooks, sideEffects=effects)
    shown = await client.create(JOBS, job(), dryRun="All")
    assert shown["spec"]["suspend"] is True
    assert hooks.asked[0]["dryRun"] is True
    assert await client.items(JOBS) == []


async def test_a_webhook_with_side_effects_cannot_be_registered(
    client: Client, hooks: Hooks
) -> None:
    """So that a dry run can always be reviewed."""
    configuration = hooks.configuration("Mutating", "mutate", "/mutate", sideEffects="Some")
    refused = await client.call("POST", MUTATING, configuration)
    assert refused.causes == [
        (
            "webhooks[0].sideEffects",
            'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
        )
    ]


async def test_selectors_narrow_what_is_seen(client: Client, hooks: Hooks) -> None:
    hooks.answers["/mutate"] = SUSPEND
    names = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["other"]}
    await mutate(
        client,
        hooks,
        namespaceSelector={"matchExpressions": [names]},
        objectSelector={"matchLabels": {"managed": "yes"}},
    )
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    await client.create("/api/v1/namespaces", namespace)
    managed = {"labels": {"managed": "yes"}}
    elsewhere = await client.create("/apis/batch/v1/namespaces/other/jobs", job(metadata=managed))
    plain = await client.create(JOBS, job("plain"))
    seen = await client.create(JOBS, job("seen", metadata=managed))
    suspended = [one["spec"]["suspend"] for one in (elsewhere, plain, seen)]
    assert suspended == [False, False, True]


async def test_warnings_are_passed_on(client: Client, hooks: Hooks) -> None:
    hooks.answers["/validate"] = lambda _: {"allowed": True, "warnings": ['use "queues"']}
    await validate(client, hooks)
    answer = await client.call("POST", JOBS, job(suspend=True))
    assert answer.status == 201
    assert answer.headers["Warning"] == '299 - "use \\"queues\\""'


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"uid": "other", "allowed": True}, 'expected response.uid="'),
        (
            {"allowed": True, "patchType": "JSONPatch", "patch": "W10="},
            "may not return response.patch",
        ),
    ],
)
async def test_nonsense_is_a_failure_to_call(
    client: Client, hooks: Hooks, answer: dict[str, Any], why: str
) -> None:
    hooks.answers["/validate"] = lambda _: answer
    await validate(client, hooks)
    refused = await client.call("POST", JOBS, job())
    assert refused.status == 500
    assert "received invalid webhook response: " in refused.body["message"]
    assert why in refused.body["message"]


async def test_services_are_looked_up(hooks: Hooks) -> None:
    hooks.answers["/mutate"] = SUSPEND
    async with (
        Sandbox(settings(services={("sluice-system", "webhooks"): hooks.url})) as sandbox,
        client_of(sandbox) as client,
    ):
        service = {"namespace": "sluice-system", "name": "webhooks", "path": "/mutate"}
        await mutate(client, hooks, clientConfig={"service": service, "caBundle": hooks.bundle})
        assert (await client.create(JOBS, job()))["spec"]["suspend"] is True


async def test_an_object_that_moves_meanwhile_is_reviewed_again(
    client: Client, hooks: Hooks
) -> None:
    """Both writers of a slow review win: the second is reviewed on top of the first."""
    hooks.answers["/validate"] = allow
    await client.create(JOBS, job(suspend=True))
    await validate(client, hooks)
    hooks.delay_s = 0.1
    writes = [
        client.patch(f"{JOBS}/train", {"metadata": {"labels": {name: "x"}}}) for name in ("a", "b")
    ]
    answers = await asyncio.gather(*writes)
    assert [answer.status for answer in answers] == [200, 200]
    labels = (await client.get(f"{JOBS}/train"))["metadata"]["labels"]
    assert (labels["a"], labels["b"]) == ("x", "x")
    assert len(hooks.asked) == 3

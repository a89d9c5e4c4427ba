"""Does the real kubectl feel at home in the sandbox?"""

import json

import yaml

from tests.sandbox.client import FOREVER, JOBS, PODS, Client, Kubectl, is_true, job


def rows(output: str) -> list[list[str]]:
    return [line.split() for line in output.strip().splitlines()]


async def test_tables_read_as_people_know_them(client: Client, kubectl: Kubectl) -> None:
    await client.create(JOBS, job("done"))
    await client.create(JOBS, job("held", suspend=True))
    await client.create(JOBS, job("busy", annotations=FOREVER, parallelism=2, completions=2))
    await client.until(f"{JOBS}/done", is_true("Complete"))
    await client.until(f"{JOBS}/busy", lambda found: found["status"].get("ready") == 2)

    nodes = rows(await kubectl("get", "nodes"))
    assert nodes[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [row[:3] for row in nodes[1:]] == [
        ["node-000", "Ready", "<none>"],
        ["node-001", "Ready", "<none>"],
    ]
    jobs = rows(await kubectl("get", "jobs"))
    assert jobs[0] == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert [row[:3] for row in jobs[1:]] == [
        ["busy", "Running", "0/2"],
        ["done", "Complete", "1/1"],
        ["held", "Suspended", "0/1"],
    ]
    pods = rows(await kubectl("get", "pods", "-l", "job-name=busy"))
    assert pods[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[1:4] for row in pods[1:]] == [["1/1", "Running", "0"]] * 2
    (ended,) = rows(await kubectl("get", "pods", "-l", "job-name=done", "--no-headers"))
    assert ended[1:3] == ["0/1", "Completed"]
    wide = rows(await kubectl("get", "pods", "-l", "job-name=busy", "-o", "wide"))
    assert wide[1][6] == "node-000"
    assert rows(await kubectl("get", "ns"))[1][:2] == ["default", "Active"]


async def test_apply_creates_and_changes(client: Client, kubectl: Kubectl) -> None:
    """The second apply is a strategic merge patch."""
    manifest = job(suspend=True, metadata={"labels": {"kueue.x-k8s.io/queue-name": "team-a"}})
    out = await kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert out == "job.batch/train created\n"
    manifest["spec"]["parallelism"] = 3
    manifest["metadata"]["labels"] = {"size": "l"}
    out = await kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert out == "job.batch/train configured\n"
    found = await client.get(f"{JOBS}/train")
    assert found["spec"]["parallelism"] == 3
    assert found["metadata"]["labels"] == {"size": "l"}
    out = await kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert out == "job.batch/train unchanged\n"


async def test_server_side_apply_owns_fields(client: Client, kubectl: Kubectl) -> None:
    manifest = yaml.safe_dump(job(suspend=True, parallelism=2))
    await kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=manifest)
    other = yaml.safe_dump(job(suspend=True, parallelism=4))
    code, out = await kubectl.run(
        "apply", "--server-side", "--field-manager=two", "-f", "-", stdin=other
    )
    assert code != 0
    assert 'conflict with "one"' in out
    assert ".spec.parallelism" in out
    assert (await client.get(f"{JOBS}/train"))["spec"]["parallelism"] == 2


async def test_patch_and_edit_dialects(client: Client, kubectl: Kubectl) -> None:
    """`kubectl patch` without a type is a strategic merge patch, for built-in kinds."""
    await client.create(JOBS, job(suspend=True))
    await client.until(f"{JOBS}/train", is_true("Suspended"))
    container = {"name": "main", "resources": {"requests": {"cpu": "3"}}}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    await kubectl("patch", "job", "train", "-p", json.dumps(patch))
    (kept,) = (await client.get(f"{JOBS}/train"))["spec"]["template"]["spec"]["containers"]
    assert (kept["image"], kept["resources"]) == ("busybox:1", {"requests": {"cpu": "3"}})
    await kubectl("label", "job", "train", "a=b")
    await kubectl("patch", "job", "train", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    assert await kubectl("wait", "--for=condition=Complete", "job/train", "--timeout=10s")
    code, out = await kubectl.run("patch", "job", "missing", "-p", "{}")
    assert (code, out) == (1, 'Error from server (NotFound): jobs.batch "missing" not found\n')


async def test_cordon_keeps_pods_away(client: Client, kubectl: Kubectl) -> None:
    await kubectl("cordon", "node-000")
    await kubectl("taint", "node", "node-001", "gpu=yes:NoSchedule")
    await client.create(JOBS, job())
    found = await client.until(
        PODS, lambda body: any(one["status"].get("conditions") for one in body["items"])
    )
    message = found["items"][0]["status"]["conditions"][0]["message"]
    assert message == (
        "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    )
    nodes = rows(await kubectl("get", "nodes", "--no-headers"))
    assert nodes[0][1] == "Ready,SchedulingDisabled"
    await kubectl("uncordon", "node-000")
    await client.until(f"{JOBS}/train", is_true("Complete"))


async def test_namespaces_come_and_go_with_what_is_in_them(
    client: Client, kubectl: Kubectl
) -> None:
    assert await kubectl("create", "namespace", "team-a") == "namespace/team-a created\n"
    manifest = yaml.safe_dump(job(annotations=FOREVER, metadata={"finalizers": []}))
    await kubectl("apply", "-n", "team-a", "-f", "-", stdin=manifest)
    await client.until(
        "/apis/batch/v1/namespaces/team-a/jobs/train", lambda job: job["status"].get("ready") == 1
    )
    await kubectl("delete", "namespace", "team-a", "--timeout=10s")
    assert (await client.call("GET", "/api/v1/namespaces/team-a")).status == 404
    assert await client.items("/apis/batch/v1/jobs") == []
    assert await client.items("/api/v1/pods") == []
    assert await client.items("/api/v1/namespaces/team-a/events") == []
    code, out = await kubectl.run("delete", "namespace", "default")
    assert code == 1
    assert "this namespace may not be deleted" in out


async def test_describe_shows_events_of_both_faces(client: Client, kubectl: Kubectl) -> None:
    made = await client.create(JOBS, job())
    await client.until(f"{JOBS}/train", is_true("Complete"))
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "admitted.1", "namespace": "default"},
        "regarding": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "train",
            "namespace": "default",
            "uid": made["metadata"]["uid"],
        },
        "reason": "Started",
        "note": "Admitted by clusterQueue team-a",
        "type": "Normal",
        "action": "Admit",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "sluice",
        "reportingInstance": "sluice-0",
    }
    await client.create("/apis/events.k8s.io/v1/namespaces/default/events", event)
    told = await kubectl("describe", "job", "train")
    assert "Created pod: train-" in told
    assert "Job completed" in told
    assert "Admitted by clusterQueue team-a" in told
    found = await client.items("/apis/events.k8s.io/v1/events", fieldSelector="reason=Started")
    assert found[0]["note"] == event["note"]
    assert found[0]["regarding"] == event["regarding"]


async def test_discovery_and_explain(kubectl: Kubectl) -> None:
    kinds = await kubectl("api-resources", "--no-headers", "-o", "name")
    assert {"jobs.batch", "pods", "nodes", "namespaces", "events"} <= set(kinds.split())
    assert "While true no pods run" in await kubectl("explain", "job.spec.suspend")
    version = json.loads(await kubectl("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"] == "v1.37.0-sandbox"


async def test_deletion_waits_for_the_pods_grace(client: Client, kubectl: Kubectl) -> None:
    await client.create(JOBS, job(annotations=FOREVER))
    await client.until(f"{JOBS}/train", lambda found: found["status"].get("ready") == 1)
    assert "deleted" in await kubectl("delete", "job", "train", "--timeout=10s")
    await client.until(PODS, lambda found: not found["items"])

"""Does what depends on a deleted object go, wait or stay, as asked?"""

from tests.sandbox.client import FOREVER, JOBS, PODS, Client, job, pod

TRAIN = f"{JOBS}/train"
NAMESPACES = "/api/v1/namespaces"


async def running_job(client: Client) -> None:
    await client.create(JOBS, job(annotations=FOREVER, parallelism=2, completions=2))
    await client.until(TRAIN, lambda found: found["status"].get("ready") == 2)


async def test_background_deletion_takes_the_pods_along(client: Client) -> None:
    await running_job(client)
    (await client.call("DELETE", TRAIN, {"propagationPolicy": "Background"})).ok()
    assert (await client.call("GET", TRAIN)).status == 404
    await client.until(PODS, lambda found: not found["items"])


async def test_foreground_deletion_waits_for_the_pods(client: Client) -> None:
    await client.create(JOBS, job(annotations={**FOREVER, "sluice.dev/stop-seconds": "10"}))
    await client.until(TRAIN, lambda found: found["status"].get("ready") == 1)
    (await client.call("DELETE", TRAIN, {"propagationPolicy": "Foreground"})).ok()
    waiting = await client.get(TRAIN)
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert len(await client.items(PODS)) == 1
    await client.until_gone(TRAIN)
    assert await client.items(PODS) == []


async def test_without_a_policy_the_pods_of_a_job_are_orphaned(client: Client) -> None:
    """The default of batch/v1, which surprises everybody once."""
    await running_job(client)
    (await client.call("DELETE", TRAIN)).ok()
    await client.until_gone(TRAIN)
    pods = await client.items(PODS)
    assert len(pods) == 2
    assert all("ownerReferences" not in one["metadata"] for one in pods)


async def test_a_dependent_of_nobody_is_garbage(client: Client) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "uid": "no-such-uid"}
    await client.create(PODS, pod(annotations=FOREVER, metadata={"ownerReferences": [owner]}))
    await client.until_gone(f"{PODS}/alone")


async def test_owners_of_unknown_kinds_are_believed(client: Client) -> None:
    owner = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": "w", "uid": "u"}
    await client.create(PODS, pod(metadata={"ownerReferences": [owner]}))
    await client.until(f"{PODS}/alone", lambda found: found["status"]["phase"] == "Succeeded")


async def test_an_object_with_one_living_owner_stays(client: Client) -> None:
    kept = await client.create(JOBS, job("keeper", suspend=True))
    gone = await client.create(JOBS, job("leaver", suspend=True))
    owners = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": one["metadata"]["name"],
            "uid": one["metadata"]["uid"],
        }
        for one in (kept, gone)
    ]
    await client.create(PODS, pod(annotations=FOREVER, metadata={"ownerReferences": owners}))
    await client.create(PODS, pod("witness", FOREVER, metadata={"ownerReferences": owners[1:]}))
    (await client.call("DELETE", f"{JOBS}/leaver", {"propagationPolicy": "Background"})).ok()
    await client.until_gone(f"{PODS}/witness")
    assert "deletionTimestamp" not in (await client.get(f"{PODS}/alone"))["metadata"]


async def test_a_namespace_is_emptied_before_it_goes(client: Client) -> None:
    await client.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    )
    jobs = "/apis/batch/v1/namespaces/team/jobs"
    held = job("held", metadata={"finalizers": ["example.com/hold"]}, suspend=True)
    await client.create(jobs, held)
    (await client.call("DELETE", f"{NAMESPACES}/team")).ok()
    namespace = await client.get(f"{NAMESPACES}/team")
    assert namespace["status"]["phase"] == "Terminating"
    refused = await client.call("POST", jobs, job("late"))
    assert refused.status == 403
    assert refused.body["message"] == (
        'jobs.batch "late" is forbidden: unable to create new content in namespace team '
        "because it is being terminated"
    )
    leaving = await client.until(
        f"{jobs}/held", lambda found: "deletionTimestamp" in found["metadata"]
    )
    assert leaving["metadata"]["finalizers"] == ["example.com/hold"]
    assert (await client.call("GET", f"{NAMESPACES}/team")).status == 200
    (await client.patch(f"{jobs}/held", {"metadata": {"finalizers": []}})).ok()
    await client.until_gone(f"{NAMESPACES}/team")


async def test_nothing_is_created_in_a_missing_namespace(client: Client) -> None:
    answer = await client.call("POST", "/apis/batch/v1/namespaces/nowhere/jobs", job())
    assert answer.status == 404
    assert answer.body["message"] == 'namespaces "nowhere" not found'

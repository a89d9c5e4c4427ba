"""Do creating, reading, listing and deleting mean the same on both clusters?"""

import pytest

from app.kube import errors
from app.kube.client import KubeClient, Selection
from app.kube.resources import JOBS, NAMESPACES
from tests.kube.contract.cluster import eventually, job, suspended


async def test_a_created_object_gets_its_identity(client: KubeClient, namespace: str) -> None:
    created = await client.create(JOBS, namespace, job())
    metadata = created["metadata"]
    assert (created["apiVersion"], created["kind"]) == ("batch/v1", "Job")
    assert (metadata["namespace"], metadata["generation"]) == (namespace, 1)
    assert metadata["uid"]
    assert int(metadata["resourceVersion"]) > 0
    assert metadata["creationTimestamp"].endswith("Z")
    read = await client.get(JOBS, namespace, "train")
    assert read["metadata"]["uid"] == metadata["uid"]


async def test_jobs_get_their_defaults_and_controller_labels(
    client: KubeClient, namespace: str
) -> None:
    sparse = job()
    del sparse["spec"]["parallelism"], sparse["spec"]["completions"], sparse["spec"]["suspend"]
    created = await client.create(JOBS, namespace, sparse, dry_run=True)
    spec = created["spec"]
    assert (spec["parallelism"], spec["completions"], spec["suspend"]) == (1, 1, False)
    labels = spec["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "train"
    assert labels["batch.kubernetes.io/controller-uid"] == labels["controller-uid"]


async def test_a_dry_run_stores_nothing(client: KubeClient, namespace: str) -> None:
    created = await client.create(JOBS, namespace, job(), dry_run=True)
    assert created["metadata"]["name"] == "train"
    with pytest.raises(errors.KubeNotFound):
        await client.get(JOBS, namespace, "train")


async def test_a_name_is_given_once(client: KubeClient, namespace: str) -> None:
    await client.create(JOBS, namespace, job())
    with pytest.raises(errors.KubeAlreadyExists):
        await client.create(JOBS, namespace, job())


async def test_generated_names_differ(client: KubeClient, namespace: str) -> None:
    unnamed = job()
    unnamed["metadata"] = {"generateName": "run-"}
    names = {(await client.create(JOBS, namespace, unnamed))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("run-") for name in names)


async def test_what_is_invalid_names_the_field(client: KubeClient, namespace: str) -> None:
    wrong = job()
    wrong["spec"]["parallelism"] = -1
    with pytest.raises(errors.KubeInvalid) as caught:
        await client.create(JOBS, namespace, wrong)
    assert "spec.parallelism" in [cause.path for cause in caught.value.causes]


async def test_a_namespace_must_exist(client: KubeClient) -> None:
    with pytest.raises(errors.KubeNotFound):
        await client.create(JOBS, "no-such-namespace", job())


async def test_pages_hold_everything_once(client: KubeClient, namespace: str) -> None:
    names = [f"job-{number:02}" for number in range(7)]
    for name in names:
        await client.create(JOBS, namespace, job(name))
    listed = await client.list(JOBS, Selection(namespace=namespace), limit=3)
    assert [item["metadata"]["name"] for item in listed.items] == names
    assert {(item["apiVersion"], item["kind"]) for item in listed.items} == {("batch/v1", "Job")}
    assert int(listed.resource_version) > 0


async def test_selectors(client: KubeClient, namespace: str) -> None:
    for name, labels in (("a", {"team": "x"}), ("b", {"team": "y"}), ("c", {})):
        await client.create(JOBS, namespace, job(name, labels=labels))

    async def names(selection: Selection) -> list[str]:
        listed = await client.list(JOBS, selection)
        return [item["metadata"]["name"] for item in listed.items]

    assert await names(Selection(namespace=namespace, labels="team")) == ["a", "b"]
    assert await names(Selection(namespace=namespace, labels="team in (y,z)")) == ["b"]
    assert await names(Selection(namespace=namespace, labels="team!=x")) == ["b", "c"]
    assert await names(Selection(namespace=namespace, fields="metadata.name=c")) == ["c"]


async def test_replacing_an_outdated_version_is_a_conflict(
    client: KubeClient, namespace: str
) -> None:
    await client.create(JOBS, namespace, job())
    old = await suspended(client, namespace)
    newer = {**old, "metadata": {**old["metadata"], "labels": {"a": "1"}}}
    replaced = await client.replace(JOBS, namespace, newer)
    assert replaced["metadata"]["labels"]["a"] == "1"
    with pytest.raises(errors.KubeConflict):
        await client.replace(JOBS, namespace, old)


async def test_deleting_only_the_very_object(client: KubeClient, namespace: str) -> None:
    created = await client.create(JOBS, namespace, job())
    metadata = created["metadata"]
    with pytest.raises(errors.KubeConflict):
        await client.delete(JOBS, namespace, "train", uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(errors.KubeConflict):
        await client.delete(JOBS, namespace, "train", resource_version="1")
    await client.delete(JOBS, namespace, "train", uid=metadata["uid"])

    async def gone() -> bool:
        found = await client.list(JOBS, Selection(namespace=namespace))
        return not found.items

    await eventually(gone)
    with pytest.raises(errors.KubeNotFound):
        await client.delete(JOBS, namespace, "train")


async def test_a_finalizer_holds_a_deleted_object(client: KubeClient, namespace: str) -> None:
    await client.create(JOBS, namespace, job(finalizers=["sluice.dev/held"]))
    await client.delete(JOBS, namespace, "train")
    held = await client.get(JOBS, namespace, "train")
    assert held["metadata"]["deletionTimestamp"]
    await client.patch(JOBS, namespace, "train", {"metadata": {"finalizers": None}})

    async def gone() -> bool:
        found = await client.list(JOBS, Selection(namespace=namespace))
        return not found.items

    await eventually(gone)


async def test_discovery_and_cluster_scope(client: KubeClient, namespace: str) -> None:
    found = await client.get(NAMESPACES, None, namespace)
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace
    version = await client.raw("/version")
    assert version["gitVersion"].startswith("v1.37")
    resources = await client.raw("/apis/batch/v1")
    assert "jobs/status" in [item["name"] for item in resources["resources"]]
    with pytest.raises(errors.KubeNotFound):
        await client.raw("/apis/no.such.group/v1/things")

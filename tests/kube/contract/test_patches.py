"""Does each kind of patch change what it should, and is it refused when the object has moved?"""

from typing import Any

import pytest

from app.kube import errors
from app.kube.client import KubeClient
from app.kube.resources import JOBS
from tests.kube.contract.cluster import job, suspended

OTHER_UID = "00000000-0000-0000-0000-000000000000"


async def test_merge_patch_sets_and_removes(client: KubeClient, namespace: str) -> None:
    created = await client.create(JOBS, namespace, job(annotations={"a": "1", "b": "2"}))
    patch = {"metadata": {"annotations": {"a": None, "c": "3"}}, "spec": {"parallelism": 1}}
    changed = await client.patch(JOBS, namespace, "train", patch)
    assert changed["metadata"]["annotations"] == {"b": "2", "c": "3"}
    assert changed["spec"]["parallelism"] == 1
    assert int(changed["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert changed["metadata"]["generation"] == 2


async def test_merge_patch_replaces_whole_lists(client: KubeClient, namespace: str) -> None:
    await client.create(JOBS, namespace, job())
    patch = {
        "spec": {"template": {"spec": {"tolerations": [{"key": "new", "operator": "Exists"}]}}}
    }
    changed = await client.patch(JOBS, namespace, "train", patch)
    assert changed["spec"]["template"]["spec"]["tolerations"] == [
        {"key": "new", "operator": "Exists"}
    ]


async def test_json_patch_and_its_test_operation(client: KubeClient, namespace: str) -> None:
    await client.create(JOBS, namespace, job(annotations={"a": "1"}))
    version = (await suspended(client, namespace))["metadata"]["resourceVersion"]
    guard = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
    change = {"op": "add", "path": "/metadata/annotations/sluice.dev~1x", "value": "y"}
    changed = await client.patch(JOBS, namespace, "train", [guard, change], patch_type="json")
    assert changed["metadata"]["annotations"]["sluice.dev/x"] == "y"
    with pytest.raises(errors.KubeInvalid):
        await client.patch(JOBS, namespace, "train", [guard, change], patch_type="json")


async def test_strategic_merge_patch_merges_containers_by_name(
    client: KubeClient, namespace: str
) -> None:
    await client.create(JOBS, namespace, job())
    tolerations = [{"key": "new", "operator": "Exists"}]
    patch = {"spec": {"template": {"spec": {"tolerations": tolerations}}}}
    changed = await client.patch(JOBS, namespace, "train", patch, patch_type="strategic")
    assert changed["spec"]["template"]["spec"]["nodeSelector"] == {"mine": "yes"}


@pytest.mark.parametrize("subresource", [None, "status"])
@pytest.mark.parametrize(
    "wrong",
    [{"resourceVersion": "1"}, {"uid": OTHER_UID, "resourceVersion": "1"}],
    ids=["version", "uid and version"],
)
async def test_a_merge_patch_for_another_object_or_version_is_a_conflict(
    client: KubeClient, namespace: str, wrong: dict[str, str], subresource: str | None
) -> None:
    created = await client.create(JOBS, namespace, job())
    metadata = {"uid": created["metadata"]["uid"], "annotations": {"a": "1"}, **wrong}
    with pytest.raises(errors.KubeConflict):
        await client.patch(
            JOBS, namespace, "train", {"metadata": metadata}, subresource=subresource
        )
    read = await client.get(JOBS, namespace, "train")
    assert "a" not in read["metadata"].get("annotations", {})


@pytest.mark.parametrize("subresource", [None, "status"])
async def test_a_wrong_uid_alone_is_refused(
    client: KubeClient, namespace: str, subresource: str | None
) -> None:
    """On ``status`` a real apiserver says 422 (immutable), elsewhere 409: our patches name the version as well."""
    await client.create(JOBS, namespace, job())
    body = {"metadata": {"uid": OTHER_UID}}
    with pytest.raises((errors.KubeConflict, errors.KubeInvalid)):
        await client.patch(JOBS, namespace, "train", body, subresource=subresource)


async def test_a_patch_that_changes_nothing_moves_no_version(
    client: KubeClient, namespace: str
) -> None:
    """This is why each SUSPEND changes an annotation."""
    await client.create(JOBS, namespace, job())
    before = (await suspended(client, namespace))["metadata"]["resourceVersion"]
    same = await client.patch(JOBS, namespace, "train", {"spec": {"suspend": True}})
    assert same["metadata"]["resourceVersion"] == before
    mark = {"metadata": {"annotations": {"sluice.dev/stop": "1"}}}
    marked = await client.patch(JOBS, namespace, "train", mark)
    assert marked["metadata"]["resourceVersion"] != before


async def test_patching_what_is_not_there(client: KubeClient, namespace: str) -> None:
    with pytest.raises(errors.KubeNotFound):
        await client.patch(JOBS, namespace, "none", {"spec": {"suspend": True}})


async def test_the_main_resource_and_its_status_do_not_touch_each_other(
    client: KubeClient, namespace: str
) -> None:
    await client.create(JOBS, namespace, job())
    by_main = await client.patch(JOBS, namespace, "train", {"status": {"succeeded": 9}})
    assert by_main["status"].get("succeeded", 0) == 0
    body = {"spec": {"parallelism": 1}, "status": {"terminating": 0}}
    by_status = await client.patch(JOBS, namespace, "train", body, subresource="status")
    assert by_status["spec"]["parallelism"] == 2


def applied(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "annotations": {"sluice.dev/x": "1"}},
        "spec": spec,
    }


async def test_server_side_apply_owns_its_fields(client: KubeClient, namespace: str) -> None:
    await client.create(JOBS, namespace, job())
    await client.patch(JOBS, namespace, "train", {"spec": {"parallelism": 1}})
    first = await client.apply(JOBS, namespace, applied())
    assert first["metadata"]["annotations"]["sluice.dev/x"] == "1"
    managers = {
        entry["manager"]: entry["operation"] for entry in first["metadata"]["managedFields"]
    }
    assert "sluice" in managers
    bare = applied()
    del bare["metadata"]["annotations"]
    after = await client.apply(JOBS, namespace, bare)
    assert "sluice.dev/x" not in after["metadata"].get("annotations", {})


async def test_server_side_apply_conflicts_unless_forced(
    client: KubeClient, namespace: str
) -> None:
    await client.create(JOBS, namespace, job())
    with pytest.raises(errors.KubeConflict):
        await client.apply(JOBS, namespace, applied(parallelism=1))
    forced = await client.apply(JOBS, namespace, applied(parallelism=1), force=True)
    assert forced["spec"]["parallelism"] == 1

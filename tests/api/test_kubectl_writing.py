"""What people change with kubectl, on our own kinds, and what Postgres holds afterwards."""

import json
from typing import Any

from tests.api.running import Corner
from tests.apiserver.running import Kubectl
from tests.unit.intake import samples

IN_USE = "kueue.x-k8s.io/resource-in-use"


def queue(corner: Corner, name: str = "research", **spec: Any) -> dict[str, Any]:
    return corner.placed(samples.cluster_queue(**spec), name)


def nominal(found: dict[str, Any]) -> str:
    value: str = found["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"]
    return value


async def test_create_fills_defaults_in_and_twice_is_once(corner: Corner, kubectl: Kubectl) -> None:
    manifest = queue(corner)
    made = (await kubectl("create", "-f", "-", "-o", "json", stdin=manifest)).json()
    assert made["spec"]["queueingStrategy"] == "BestEffortFIFO"
    assert made["spec"]["preemption"]["reclaimWithinCohort"] == "Never"
    assert made["metadata"]["finalizers"] == [IN_USE]
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["uid"]
    before = await corner.worker.state()
    again = await kubectl.attempt("create", "-f", "-", stdin=manifest)
    assert '(AlreadyExists): error when creating "STDIN": clusterqueues.kueue' in again.err
    assert await corner.worker.state() == before


async def test_apply_client_side(corner: Corner, kubectl: Kubectl) -> None:
    manifest = queue(corner)
    assert "created" in (await kubectl("apply", "-f", "-", stdin=manifest)).out
    before = await corner.worker.state()
    assert "unchanged" in (await kubectl("apply", "-f", "-", stdin=manifest)).out
    assert await corner.worker.state() == before, "what changes nothing stores nothing"
    manifest["spec"]["stopPolicy"] = "Hold"
    manifest["spec"]["resourceGroups"] = [samples.group("spot")]
    assert "configured" in (await kubectl("apply", "-f", "-", stdin=manifest)).out
    found = await kubectl.get("cq", corner.name("research"))
    assert found["spec"]["stopPolicy"] == "Hold"
    assert len(found["spec"]["resourceGroups"][0]["flavors"]) == 1
    assert found["metadata"]["generation"] == 2
    del manifest["spec"]["stopPolicy"]
    await kubectl("apply", "-f", "-", stdin=manifest)
    found = await kubectl.get("cq", corner.name("research"))
    assert found["spec"]["stopPolicy"] == "None", "no longer applied: back to the default"


async def test_apply_server_side_with_conflicts(corner: Corner, kubectl: Kubectl) -> None:
    one = queue(corner, stopPolicy="Hold")
    mine = ("apply", "--server-side", "--field-manager=one", "-f", "-")
    theirs = ("apply", "--server-side", "--field-manager=two", "-f", "-")
    assert "serverside-applied" in (await kubectl(*mine, stdin=one)).out
    part = {key: one[key] for key in ("apiVersion", "kind", "metadata")}
    before = await corner.worker.state()
    refused = await kubectl.attempt(*theirs, stdin={**part, "spec": {"stopPolicy": "None"}})
    assert refused.code == 1
    assert 'conflict with "one": .spec.stopPolicy' in refused.err
    assert await corner.worker.state() == before
    await kubectl(*theirs, "--force-conflicts", stdin={**part, "spec": {"stopPolicy": "None"}})
    found = await kubectl.get("cq", corner.name("research"), "--show-managed-fields")
    assert found["spec"]["stopPolicy"] == "None"
    assert nominal(found) == "10", "the rest is still the first one's"
    assert {entry["manager"] for entry in found["metadata"]["managedFields"]} == {"one", "two"}
    await kubectl(*theirs, stdin=part)
    found = await kubectl.get("cq", corner.name("research"))
    assert found["spec"].get("stopPolicy", "None") == "None"


async def test_diff(corner: Corner, kubectl: Kubectl) -> None:
    manifest = queue(corner)
    await kubectl("apply", "-f", "-", stdin=manifest)
    before = await corner.worker.state()
    assert (await kubectl.attempt("diff", "-f", "-", stdin=manifest)).code == 0
    manifest["spec"]["stopPolicy"] = "Hold"
    for how in ((), ("--server-side", "--force-conflicts")):
        told = await kubectl.attempt("diff", *how, "-f", "-", stdin=manifest)
        assert told.code == 1
        assert "+  stopPolicy: Hold" in told.out
    assert await corner.worker.state() == before


async def test_patches(corner: Corner, kubectl: Kubectl) -> None:
    name = corner.name("research")
    await kubectl("create", "-f", "-", stdin=queue(corner))
    merge = json.dumps({"spec": {"cohortName": "all", "stopPolicy": "Hold"}})
    await kubectl("patch", "cq", name, "--type=merge", "-p", merge)
    path = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
    operations = [
        {"op": "test", "path": path, "value": "10"},
        {"op": "replace", "path": path, "value": "1500m"},
        {"op": "remove", "path": "/spec/stopPolicy"},
    ]
    await kubectl("patch", "cq", name, "--type=json", "-p", json.dumps(operations))
    found = await kubectl.get("cq", name)
    assert (nominal(found), found["spec"]["stopPolicy"]) == ("1500m", "None")
    assert found["spec"]["cohortName"] == "all"
    before = await corner.worker.state()
    failed = await kubectl.attempt("patch", "cq", name, "--type=json", "-p", json.dumps(operations))
    assert failed.code == 1
    assert "test" in failed.err
    strategic = await kubectl.attempt("patch", "cq", name, "-p", merge)
    assert strategic.code == 1
    assert "application/strategic-merge-patch+json is not supported by kueue" in strategic.err
    assert await corner.worker.state() == before


async def test_replace_needs_the_newest_version(corner: Corner, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin=queue(corner))
    old = await kubectl.get("cq", corner.name("research"))
    newer = {**old, "spec": {**old["spec"], "stopPolicy": "Hold"}}
    await kubectl("replace", "-f", "-", stdin=newer)
    refused = await kubectl.attempt("replace", "-f", "-", stdin=old)
    assert "the object has been modified" in refused.err
    assert (await kubectl.get("cq", corner.name("research")))["spec"]["stopPolicy"] == "Hold"


async def test_edit_label_annotate(corner: Corner, kubectl: Kubectl) -> None:
    name = corner.name("research")
    manifest = queue(corner)
    manifest["metadata"]["annotations"] = {"note": "EDITME"}
    await kubectl("create", "-f", "-", stdin=manifest)
    assert "edited" in (await kubectl("edit", "cq", name)).out
    await kubectl("label", "cq", name, "tier=gold")
    await kubectl("annotate", "cq", name, "note-", "owner=eve")
    metadata = (await kubectl.get("cq", name))["metadata"]
    assert metadata["labels"] == {"tier": "gold"}
    assert metadata["annotations"] == {"owner": "eve"}
    assert metadata["generation"] == 1, "the desired state is still the same"
    refused = await kubectl.attempt("label", "cq", name, "tier=silver")
    assert "already has a value" in refused.err


async def test_delete_waits_for_finalizers(corner: Corner, kubectl: Kubectl) -> None:
    """Nobody leads here, so nobody takes the finalizer away but us."""
    name = corner.name("research")
    await kubectl("create", "-f", "-", stdin=queue(corner))
    await kubectl("delete", "cq", name, "--wait=false")
    found = await kubectl.get("cq", name)
    assert found["metadata"]["deletionTimestamp"]
    waiting = await kubectl.start("wait", f"cq/{name}", "--for=delete", "--timeout=20s")
    deleting = await kubectl.start("delete", "cq", name)
    late = json.dumps({"metadata": {"finalizers": [IN_USE, "example.com/more"]}})
    refused = await kubectl.attempt("patch", "cq", name, "--type=merge", "-p", late)
    assert "metadata.finalizers" in refused.err, "no new ones on what is being deleted"
    await kubectl("patch", "cq", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert await waiting.wait() == 0
    assert await deleting.wait() == 0
    gone = await kubectl.attempt("get", "cq", name)
    assert f'clusterqueues.kueue.x-k8s.io "{name}" not found' in gone.err


async def test_delete_collections_by_label(corner: Corner, kubectl: Kubectl) -> None:
    for name in ("one", "two", "three"):
        local = corner.placed(samples.local_queue(), name)
        local["metadata"]["labels"] = {"odd": str(name != "two").lower()}
        await kubectl("create", "-f", "-", stdin=local)
    await kubectl("delete", "lq", "-l", "odd=true")
    assert [one["metadata"]["name"] for one in (await kubectl.get("lq"))["items"]] == ["two"]
    await kubectl("delete", "lq", "--all")
    assert (await kubectl.get("lq"))["items"] == []


async def test_dry_runs_store_nothing(corner: Corner, kubectl: Kubectl) -> None:
    name = corner.name("research")
    await kubectl("create", "-f", "-", stdin=queue(corner))
    before = await corner.worker.state()
    dry = "--dry-run=server"
    other = queue(corner, "other")
    made = await kubectl("create", dry, "-f", "-", "-o", "json", stdin=other)
    assert made.json()["spec"]["queueingStrategy"] == "BestEffortFIFO", "shown as it would be"
    for how in ((), ("--server-side",)):
        await kubectl("apply", *how, dry, "-f", "-", stdin=other)
    held = queue(corner, stopPolicy="Hold")
    told = await kubectl("apply", "--server-side", "--force-conflicts", dry, "-f", "-", stdin=held)
    assert "server dry run" in told.out
    await kubectl("label", "cq", name, dry, "a=b")
    await kubectl("delete", "cq", name, dry)
    bad = queue(corner, "third", stopPolicy="Maybe")
    assert (await kubectl.attempt("create", dry, "-f", "-", stdin=bad)).code == 1
    taken = await kubectl.attempt("create", dry, "-f", "-", stdin=queue(corner))
    assert "already exists" in taken.err
    assert await corner.worker.state() == before
    assert (await kubectl.get("cq", name))["metadata"].get("labels") is None


async def test_the_older_version_is_taken_and_both_are_read(
    corner: Corner, kubectl: Kubectl
) -> None:
    name = corner.name("research")
    manifest = queue(corner)
    manifest["apiVersion"] = "kueue.x-k8s.io/v1beta1"
    manifest["spec"] |= {"cohort": "all", "flavorFungibility": {"whenCanBorrow": "Borrow"}}
    answer = await kubectl("apply", "-f", "-", stdin=manifest)
    assert "Warning: kueue.x-k8s.io/v1beta1 is deprecated" in answer.err
    new = await kubectl.get("clusterqueues.v1beta2.kueue.x-k8s.io", name)
    assert new["spec"]["cohortName"] == "all"
    assert new["spec"]["flavorFungibility"]["whenCanBorrow"] == "MayStopSearch"
    old = await kubectl.get("clusterqueues.v1beta1.kueue.x-k8s.io", name)
    assert old["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert old["spec"]["cohort"] == "all"
    assert old["spec"]["flavorFungibility"]["whenCanBorrow"] == "Borrow"
    before = await corner.worker.state()
    assert "unchanged" in (await kubectl("apply", "-f", "-", stdin=manifest)).out
    assert await corner.worker.state() == before
    manifest["spec"]["cohort"] = "others"
    await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)
    assert (await kubectl.get("cq", name))["spec"]["cohortName"] == "others"


async def test_field_validation(corner: Corner, kubectl: Kubectl) -> None:
    manifest = queue(corner, colour="red")
    before = await corner.worker.state()
    strict = await kubectl.attempt("create", "-f", "-", stdin=manifest)
    assert 'strict decoding error: unknown field "spec.colour"' in strict.err
    assert await corner.worker.state() == before
    warned = await kubectl("create", "--validate=warn", "-f", "-", stdin=manifest)
    assert 'Warning: unknown field "spec.colour"' in warned.err
    manifest["metadata"]["name"] += "-2"
    ignored = await kubectl("create", "--validate=ignore", "-f", "-", stdin=manifest)
    assert "Warning" not in ignored.err
    found = await kubectl.get("cq", manifest["metadata"]["name"])
    assert "colour" not in found["spec"]


async def test_status_is_another_door(corner: Corner, kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin=queue(corner))
    name = corner.name("research")
    status = json.dumps({"status": {"pendingWorkloads": 7}, "spec": {"stopPolicy": "Hold"}})
    await kubectl("patch", "cq", name, "--type=merge", "-p", status)
    found = await kubectl.get("cq", name)
    assert "pendingWorkloads" not in found.get("status", {})
    assert found["spec"]["stopPolicy"] == "Hold"
    again = json.dumps({"status": {"pendingWorkloads": 7}, "spec": {"stopPolicy": "None"}})
    await kubectl("patch", "cq", name, "--subresource=status", "--type=merge", "-p", again)
    found = await kubectl.get("cq", name)
    assert (found["status"]["pendingWorkloads"], found["spec"]["stopPolicy"]) == (7, "Hold")


async def test_every_change_is_audited_with_its_actor(corner: Corner, kubectl: Kubectl) -> None:
    name = corner.name("research")
    await kubectl("create", "-f", "-", stdin=queue(corner))
    await kubectl("patch", "cq", name, "--type=merge", "-p", '{"spec":{"stopPolicy":"Hold"}}')
    await kubectl("delete", "cq", name, "--wait=false")
    await kubectl("patch", "cq", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    rows = await corner.worker.audited("ClusterQueue", name)
    assert [row.verb for row in rows] == ["create", "update", "update", "delete"]
    assert {(row.actor.kind, row.actor.name) for row in rows} == {("user", "admin-person")}
    create, update, mark, remove = rows
    assert create.before is None
    assert update.before is not None
    assert update.after is not None
    assert create.after == update.before
    stops = (update.before["spec"].get("stopPolicy"), update.after["spec"]["stopPolicy"])
    assert stops == ("None", "Hold")
    assert mark.after is not None
    assert "deletionTimestamp" in mark.after["metadata"]
    assert remove.after is None
    assert [row.number for row in rows] == sorted({row.number for row in rows})

"""What people see of our kinds with kubectl: tables, columns, selectors, describe, explain, events."""

import asyncio
import json

from tests.api.running import BASE, Corner
from tests.apiserver.running import Kubectl
from tests.unit.intake import samples


async def stored(corner: Corner) -> None:
    """A cohort with a queue and a flavor, a local queue and two workloads."""
    queue = corner.placed(samples.cluster_queue(cohortName=corner.name("sample")), "research")
    queue["metadata"]["labels"] = {"corner": corner.namespace, "tier": "gold"}
    local = corner.placed(samples.local_queue(clusterQueue=corner.name("research")), "main")
    items = [
        corner.placed(samples.cohort()),
        corner.placed(samples.flavor(nodeLabels={"gpu": "a100"}), "spot"),
        queue,
        local,
        corner.placed(samples.workload(priority=2), "second"),
        corner.placed(samples.workload(samples.pod_set(count=4), priority=1), "first"),
    ]
    for item in items:
        item["metadata"].pop("uid", None)
        item["metadata"].pop("creationTimestamp", None)
    await corner.kubectl(
        "create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items}
    )


async def test_tables(corner: Corner, kubectl: Kubectl) -> None:
    await stored(corner)
    name = corner.name("research")
    lines = (await kubectl("get", "cq", name)).out.splitlines()
    assert lines[0].split() == ["NAME", "COHORT", "PENDING", "WORKLOADS", "AGE"]
    assert lines[1].split()[:3] == [name, corner.name("sample"), "0"]
    wide = (await kubectl("get", "clusterqueue", name, "-o", "wide")).out.splitlines()
    assert "STRATEGY" in wide[0]
    assert "BestEffortFIFO" in wide[1]
    assert "spot,reserved" in wide[1]

    workloads = (await kubectl("get", "wl", "--sort-by=.spec.priority")).out.splitlines()
    assert workloads[0].split()[:4] == ["NAME", "QUEUE", "RESERVED", "IN"]
    assert [line.split()[0] for line in workloads[1:]] == ["first", "second"]
    local = (await kubectl("get", "queues")).out.splitlines()
    assert local[1].split()[:4] == ["main", name, "0", "0"]
    everywhere = (await kubectl("get", "workloads", "-A")).out
    assert everywhere.splitlines()[0].startswith("NAMESPACE")
    assert corner.namespace in everywhere


async def test_output_forms_and_selectors(corner: Corner, kubectl: Kubectl) -> None:
    await stored(corner)
    name = corner.name("research")
    mine = ("-l", f"corner={corner.namespace}")
    assert (await kubectl("get", "cq", *mine, "-o", "name")).out.split() == [
        f"clusterqueue.kueue.x-k8s.io/{name}"
    ]
    assert not (await kubectl("get", "cq", *mine, "-l", "tier=silver", "-o", "name")).out
    assert f"name: {name}" in (await kubectl("get", "cq", name, "-o", "yaml")).out
    custom = "-o=custom-columns=N:.metadata.name,F:.spec.resourceGroups[0].flavors[*].name"
    assert (await kubectl("get", "cq", name, custom)).out.split()[-1] == "spot,reserved"
    by_name = await kubectl.get("wl", "--field-selector", "metadata.name=first")
    assert [one["metadata"]["name"] for one in by_name["items"]] == ["first"]
    by_queue = await kubectl.get("wl", "--field-selector", "spec.queueName=main")
    assert len(by_queue["items"]) == 2
    none = await kubectl.get("wl", "--field-selector", "spec.queueName!=main")
    assert none["items"] == []
    refused = await kubectl.attempt("get", "wl", "--field-selector", "spec.active=true")
    assert "field label not supported: spec.active" in refused.err


async def test_all_kinds_are_found_by_all_their_names(kubectl: Kubectl) -> None:
    listed = (await kubectl("api-resources", "--api-group=kueue.x-k8s.io", "--no-headers")).out
    found = {line.split()[0]: line.split()[1] for line in listed.splitlines()}
    assert found["clusterqueues"] == "cq"
    assert found["localqueues"] == "queue,queues,lq"
    assert found["workloads"] == "wl,kwl,kueueworkload,kueueworkloads"
    assert len(found) == 8
    await kubectl("get", "kueue", "-A")
    versions = (await kubectl("api-versions")).out.split()
    assert versions == ["kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2", "v1"]


async def test_describe(corner: Corner, kubectl: Kubectl) -> None:
    await stored(corner)
    told = (await kubectl("describe", "cq", corner.name("research"))).out
    assert "Cohort Name:" in told
    assert "Nominal Quota:  10" in told
    assert told.split()[-2:] == ["Events:", "<none>"]
    assert "Queue Name:" in (await kubectl("describe", "wl", "first")).out


async def test_explain(kubectl: Kubectl) -> None:
    told = (await kubectl("explain", "clusterqueue.spec.preemption")).out
    assert "reclaimWithinCohort" in told
    assert "DESCRIPTION:" in told
    whole = (await kubectl("explain", "workloads", "--recursive")).out
    assert "podSetAssignments" in whole
    assert "nominatedClusterNames" in whole
    old = await kubectl("explain", "cq.spec.cohort", "--api-version=kueue.x-k8s.io/v1beta1")
    assert "FIELD: cohort <string>" in old.out
    missing = await kubectl.attempt("explain", "cq.spec.cohort")
    assert 'field "cohort" does not exist' in missing.err


async def test_events_are_none_and_no_error(corner: Corner, kubectl: Kubectl) -> None:
    await stored(corner)
    assert "No events found" in (await kubectl("events")).err
    listed = await kubectl("get", "events")
    assert "No resources found" in listed.err


async def test_whoami_and_can_i(kubectl: Kubectl, viewer: Kubectl) -> None:
    told = (await kubectl("auth", "whoami", "-o", "json")).json()["status"]["userInfo"]
    assert told["username"] == "admin-person"
    assert "sluice:admins" in told["groups"]
    assert (await kubectl("auth", "can-i", "create", "clusterqueues")).out.strip() == "yes"
    assert (await viewer("auth", "can-i", "list", "workloads")).out.strip() == "yes"
    refused = await viewer.attempt("auth", "can-i", "delete", "workloads.kueue.x-k8s.io/x")
    assert (refused.code, refused.out.split()[0]) == (1, "no")


async def test_watch(corner: Corner, kubectl: Kubectl) -> None:
    await stored(corner)
    watching = await kubectl.start("get", "wl", "-w", "--output-watch-events")
    assert watching.stdout is not None
    seen = [await asyncio.wait_for(watching.stdout.readline(), 10) for _ in range(3)]
    assert [line.split()[:2] for line in seen[1:]] == [[b"ADDED", b"first"], [b"ADDED", b"second"]]
    await kubectl("label", "wl", "second", "hot=yes")
    await kubectl("delete", "wl", "second", "--wait=false")
    assert (await asyncio.wait_for(watching.stdout.readline(), 10)).split()[0] == b"MODIFIED"
    while (line := await asyncio.wait_for(watching.stdout.readline(), 10)).split()[0] != b"DELETED":
        assert line.split()[:2] == [b"MODIFIED", b"second"]
        await kubectl(
            "patch", "wl", "second", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
        )
    watching.kill()
    await watching.wait()


async def test_wait_for_a_condition(corner: Corner, kubectl: Kubectl) -> None:
    await stored(corner)
    waiting = await kubectl.start("wait", "wl/first", "--for=condition=Finished", "--timeout=20s")
    await asyncio.sleep(0.3)
    condition = samples.condition("Finished", reason="Succeeded", message="done")
    status = json.dumps({"status": {"conditions": [condition]}})
    await kubectl("patch", "wl", "first", "--subresource=status", "--type=merge", "-p", status)
    out, _ = await asyncio.wait_for(waiting.communicate(), 20)
    assert b"condition met" in out


async def test_raw(kubectl: Kubectl) -> None:
    listed = json.loads((await kubectl("get", "--raw", f"{BASE}/clusterqueues")).out)
    assert listed["kind"] == "ClusterQueueList"
    assert (await kubectl("get", "--raw", "/readyz")).out == "ok"
    assert "v1.37.0-sluice" in (await kubectl("version")).out

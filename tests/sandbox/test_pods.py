"""Are pods put where they may run, and do they live and stop as told?"""

from collections.abc import Callable

import pytest

from app.sandbox.cluster import Sandbox
from tests.sandbox.client import FOREVER, NODES, PODS, Client, Object, condition, pod

ALONE = f"{PODS}/alone"


def phase(wanted: str) -> Callable[[Object], bool]:
    return lambda found: found.get("status", {}).get("phase") == wanted


def bound(found: Object) -> bool:
    return "nodeName" in found["spec"]


async def test_a_pod_starts_runs_and_ends(client: Client) -> None:
    created = await client.create(PODS, pod(annotations={"sluice.dev/run-seconds": "4"}))
    assert created["status"]["phase"] == "Pending"
    running = await client.until(ALONE, phase("Running"))
    assert running["spec"]["nodeName"] == "node-000"
    assert condition(running, "Ready") == condition(running, "PodScheduled") == "True"
    ended = await client.until(ALONE, phase("Succeeded"))
    assert condition(ended, "Ready") == "False"
    state = ended["status"]["containerStatuses"][0]["state"]
    assert state["terminated"]["reason"] == "Completed"


@pytest.mark.parametrize(
    ("annotations", "code"), [({"sluice.dev/exit-code": "3"}, 3), ({"sluice.dev/fail": "true"}, 1)]
)
async def test_a_pod_fails_when_it_is_told_to(
    client: Client, annotations: dict[str, str], code: int
) -> None:
    await client.create(PODS, pod(annotations=annotations))
    failed = await client.until(ALONE, phase("Failed"))
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code


async def test_a_pod_may_never_start(client: Client) -> None:
    await client.create(PODS, pod(annotations={"sluice.dev/start-seconds": "never"}))
    await client.create(PODS, pod("other"))
    await client.until(f"{PODS}/other", phase("Succeeded"))
    stuck = await client.get(ALONE)
    assert stuck["spec"]["nodeName"] == "node-000"
    assert stuck["status"]["phase"] == "Pending"


async def test_gates_hold_a_pod_and_their_removal_frees_it(client: Client) -> None:
    gated = await client.create(PODS, pod(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]))
    assert gated["status"]["conditions"][0]["reason"] == "SchedulingGated"
    directions = {"spec": {"nodeSelector": {"kubernetes.io/hostname": "node-001"}}}
    (await client.patch(ALONE, directions)).ok()
    (await client.patch(ALONE, {"spec": {"schedulingGates": []}})).ok()
    running = await client.until(ALONE, phase("Running"))
    assert running["spec"]["nodeName"] == "node-001"
    late = await client.patch(ALONE, {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}})
    assert late.status == 422
    assert late.causes[0][0] == "spec"
    assert "pod updates may not change fields other than" in late.causes[0][1]


async def test_gates_cannot_be_added(client: Client) -> None:
    await client.create(PODS, pod())
    refused = await client.patch(ALONE, {"spec": {"schedulingGates": [{"name": "new"}]}})
    assert refused.causes[0] == (
        "spec.schedulingGates[0].name",
        "Forbidden: only deletion is allowed, but found new scheduling gate 'new'",
    )


async def test_nodes_are_filled_first_fit_and_room_is_given_back(client: Client) -> None:
    for number in range(5):
        await client.create(PODS, pod(f"p{number}", FOREVER, requests={"cpu": "3"}))
    pods = await client.until(PODS, lambda found: sum(map(bound, found["items"])) == 4)
    places = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in pods["items"]}
    assert places == {
        "p0": "node-000",
        "p1": "node-000",
        "p2": "node-001",
        "p3": "node-001",
        "p4": None,
    }
    (await client.call("DELETE", f"{PODS}/p2")).ok()
    moved = await client.until(f"{PODS}/p4", bound)
    assert moved["spec"]["nodeName"] == "node-001"


async def test_the_number_of_pods_is_limited_too(client: Client, sandbox: Sandbox) -> None:
    await sandbox.add_nodes(1, {"kind": "tiny"}, {"pods": "1"}, prefix="tiny")
    for name in ("one", "two"):
        await client.create(PODS, pod(name, FOREVER, nodeSelector={"kind": "tiny"}))
    await client.until(f"{PODS}/one", bound)
    left = await client.until(
        f"{PODS}/two", lambda found: condition(found, "PodScheduled") == "False"
    )
    assert "1 Too many pods" in left["status"]["conditions"][0]["message"]


async def test_affinity_and_tolerations_choose_the_node(client: Client, sandbox: Sandbox) -> None:
    taint = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
    await sandbox.add_nodes(
        1, {"model": "a100"}, {"nvidia.com/gpu": "8"}, prefix="gpu", taints=(taint,)
    )
    term = {"matchExpressions": [{"key": "model", "operator": "In", "values": ["a100", "h100"]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    await client.create(PODS, pod("shy", affinity=affinity))
    refused = await client.until(
        f"{PODS}/shy", lambda found: condition(found, "PodScheduled") == "False"
    )
    assert refused["status"]["conditions"][0]["message"] == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), "
        "2 node(s) didn't match Pod's node affinity/selector."
    )
    toleration = {"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}
    await client.create(PODS, pod("bold", affinity=affinity, tolerations=[toleration]))
    placed = await client.until(f"{PODS}/bold", bound)
    assert placed["spec"]["nodeName"] == "gpu-000"


async def test_important_pods_go_first(client: Client, sandbox: Sandbox) -> None:
    await sandbox.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )
    await client.create(PODS, pod("low", FOREVER, requests={"cpu": "20"}))
    made = await client.create(
        PODS, pod("high", FOREVER, requests={"cpu": "20"}, priorityClassName="high")
    )
    assert made["spec"]["priority"] == 1000
    await sandbox.add_nodes(1, capacity={"cpu": "32"}, prefix="big")
    await client.until(f"{PODS}/high", bound)
    assert not bound(await client.get(f"{PODS}/low"))
    unknown = await client.call("POST", PODS, pod("odd", priorityClassName="nope"))
    assert unknown.status == 403


async def test_deletion_is_graceful_or_forced(client: Client) -> None:
    for name in ("slow", "forced"):
        annotations = {**FOREVER, "sluice.dev/stop-seconds": "20"}  # a second at this speed
        await client.create(PODS, pod(name, annotations))
        await client.until(f"{PODS}/{name}", phase("Running"))
        (await client.call("DELETE", f"{PODS}/{name}")).ok()
        leaving = await client.get(f"{PODS}/{name}")
        assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30
        assert leaving["status"]["phase"] == "Running"
    (await client.call("DELETE", f"{PODS}/forced", {"gracePeriodSeconds": 0})).ok()
    assert (await client.call("GET", f"{PODS}/forced")).status == 404
    assert (await client.get(f"{PODS}/slow"))["metadata"]["deletionTimestamp"]
    await client.until_gone(f"{PODS}/slow")


async def test_a_finalizer_keeps_a_stopped_pod(client: Client) -> None:
    await client.create(
        PODS, pod(annotations=FOREVER, metadata={"finalizers": ["example.com/hold"]})
    )
    await client.until(ALONE, phase("Running"))
    (await client.call("DELETE", ALONE)).ok()
    ended = await client.until(ALONE, phase("Failed"))
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    (await client.patch(ALONE, {"metadata": {"finalizers": []}})).ok()
    await client.until_gone(ALONE)


async def test_pods_go_with_their_node(client: Client) -> None:
    await client.create(PODS, pod(annotations=FOREVER))
    await client.until(ALONE, phase("Running"))
    (await client.call("DELETE", f"{NODES}/node-000")).ok()
    await client.until_gone(ALONE)


async def test_a_broken_node_takes_no_pods(client: Client) -> None:
    broken = {"metadata": {"annotations": {"sluice.dev/broken": "true"}}}
    (await client.patch(f"{NODES}/node-000", broken)).ok()
    await client.until(f"{NODES}/node-000", lambda node: condition(node, "Ready") == "False")
    await client.create(PODS, pod())
    placed = await client.until(ALONE, bound)
    assert placed["spec"]["nodeName"] == "node-001"
    mended = {"metadata": {"annotations": {"sluice.dev/broken": None}}}
    (await client.patch(f"{NODES}/node-000", mended)).ok()
    await client.until(f"{NODES}/node-000", lambda node: condition(node, "Ready") == "True")

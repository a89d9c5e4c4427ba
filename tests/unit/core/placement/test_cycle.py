"""Places in whole cycles: found with the quota, held by admissions, made by preemption."""

from typing import Any

from app.core import lifecycle
from app.core.decisions import CycleResult
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.metadata import status_of
from app.core.model import Workload
from app.core.topology import HOSTNAME, expanded
from tests.builders import (
    NOW,
    admitted,
    cluster_queue,
    flavor,
    image,
    local_queue,
    reasons,
    run,
    workload,
)

TOPOLOGY: Manifest = {
    "kind": "Topology",
    "metadata": {"name": "racks"},
    "spec": {"levels": [{"nodeLabel": level} for level in ("block", "rack", HOSTNAME)]},
}
FLAVOR = flavor("gpu", topologyName="racks", nodeLabels={"pool": "gpu"})


def node(path: str, cpu: int = 4, **more: Any) -> Manifest:
    block, rack, host = path.split("/")
    ready = {"type": "Ready", "status": more.pop("ready", "True")}
    return {
        "kind": "Node",
        "metadata": {
            "name": host,
            "labels": {"pool": "gpu", "block": block, "rack": rack, HOSTNAME: host},
        },
        "spec": more,
        "status": {"allocatable": {"cpu": str(cpu), "pods": "110"}, "conditions": [ready]},
    }


def gang(name: str, pods: int, level: str | None = "rack", **more: Any) -> Manifest:
    request = {"topologyRequest": {"required": level}} if level else {}
    return workload(name, pods=pods, cpu="1", pod_set=request, **more)


def world(*more: Manifest, quota: str = "100", **spec: Any) -> Image:
    """Two racks of two hosts of four cpus."""
    nodes = [node(f"a/r{rack}/h{rack}{host}") for rack in (1, 2) for host in (1, 2)]
    queue = cluster_queue("cq", {"gpu": {"cpu": quota}}, **spec)
    return image(TOPOLOGY, FLAVOR, queue, local_queue("main", "cq"), *nodes, *more)


def places(result: CycleResult, name: str = "") -> dict[str, int]:
    """The hosts and pods of the one that was admitted."""
    (admit,) = [one for one in result.admissions if one.name == name or not name]
    topology = admit.admission.pod_sets[0].topology
    assert topology is not None
    return {values[-1]: count for values, count in topology.domains}


def message(result: CycleResult, name: str) -> str:
    return next(one.explanation.message for one in result.pending if one.name == name)


def test_an_admission_says_where_the_pods_go() -> None:
    assert places(run(world(gang("a", 6)))) == {"h11": 4, "h12": 2}


def test_places_are_held_until_the_workload_has_finished() -> None:
    of = world(gang("a", 8), gang("b", 8), gang("c", 8))
    assert [admitted(run(of)) for _ in range(3)] == [["a"], ["b"], []]

    of.remove("Workload", "default", "a")

    assert places(run(of)) == {"h11": 4, "h12": 4}


def test_fragmented_room_makes_a_fitting_quota_wait() -> None:
    of = world(gang("a", 5), gang("b", 5), gang("c", 6))
    run(of)
    run(of)
    result = run(of)

    assert reasons(result) == {"c": "WaitingForQuota"}
    assert 'topology "racks" allows to fit only 3 out of 6 pod(s)' in message(result, "c")


def test_what_no_empty_cluster_would_hold_can_never_fit() -> None:
    result = run(world(gang("a", 9)))

    assert reasons(result) == {"a": "TopologyPlacementFailed"}
    assert "allows to fit only 8 out of 9 pod(s)" in message(result, "a")


def test_preemption_makes_room_where_it_is_needed() -> None:
    of = world(
        gang("old", 8, age=9),
        gang("other", 8, age=8),
        preemption={"withinClusterQueue": "LowerPriority"},
    )
    run(of)
    run(of, after=1)
    of.put(parse(gang("urgent", 6, priority=5)))
    result = run(of, after=60)
    assert [one.name for one in result.preemptions] == ["other"]
    assert reasons(result) == {"urgent": "WaitingForPreemptedWorkloads"}

    of.remove("Workload", "default", "other")

    assert places(run(of)) == {"h21": 4, "h22": 2}


def test_two_heads_do_not_take_the_same_room_in_one_cycle() -> None:
    of = image(
        TOPOLOGY,
        FLAVOR,
        node("a/r1/h1"),
        cluster_queue("one", {"gpu": {"cpu": "9"}}),
        cluster_queue("two", {"gpu": {"cpu": "9"}}),
        local_queue("one", "one"),
        local_queue("two", "two"),
        workload("a", "one", pods=3, cpu="1", age=2),
        workload("b", "two", pods=3, cpu="1", age=1),
    )
    result = run(of)

    assert admitted(result) == ["a"]
    assert reasons(result) == {"b": "WaitingForQuota"}


def test_a_smaller_gang_takes_the_room_that_another_head_left() -> None:
    part = {"topologyRequest": {"unconstrained": True}, "minCount": 1}
    of = image(
        TOPOLOGY,
        FLAVOR,
        node("a/r1/h1"),
        cluster_queue("one", {"gpu": {"cpu": "9"}}),
        cluster_queue("two", {"gpu": {"cpu": "9"}}),
        local_queue("one", "one"),
        local_queue("two", "two"),
        workload("a", "one", pods=3, cpu="1", age=2),
        workload("b", "two", pods=3, cpu="1", age=1, pod_set=part),
    )

    assert places(run(of), "b") == {"h1": 1}


def test_two_pod_sets_of_a_workload_do_not_share_the_same_room() -> None:
    """Kueue asks for each of them alone once others have taken room."""
    both = gang("both", 2, "block")
    second = {**both["spec"]["podSets"][0], "name": "second"}
    both["spec"]["podSets"].append(second)
    of = image(
        TOPOLOGY,
        FLAVOR,
        node("a/r1/h1", 4),
        cluster_queue("one", {"gpu": {"cpu": "9"}}),
        cluster_queue("cq", {"gpu": {"cpu": "9"}}),
        local_queue("one", "one"),
        local_queue("main", "cq"),
        workload("first", "one", cpu="1", age=9),
        both,
    )
    result = run(of)

    assert admitted(result) == ["first"]
    assert reasons(result) == {"both": "WaitingForQuota"}


def test_pods_that_ask_for_nothing_are_placed_with_their_group() -> None:
    asks = {"topologyRequest": {"required": "rack", "podSetGroupName": "g"}}
    group = workload("group", pods=3, cpu="1", pod_set=asks)
    leader = workload("x", pod_set={"name": "leader", **asks})["spec"]["podSets"][0]
    group["spec"]["podSets"].append(leader)
    (admit,) = run(world(group)).admissions

    assert [one.flavors for one in admit.admission.pod_sets] == [{"cpu": "gpu"}] * 2
    assert all(one.topology is not None for one in admit.admission.pod_sets)


def test_flavors_and_pod_sets_must_agree_on_topology() -> None:
    plain = flavor("plain")
    mixed = cluster_queue("cq", {"plain": {"cpu": "9"}, "gpu": {"cpu": "9"}})
    of = image(TOPOLOGY, FLAVOR, plain, node("a/r1/h1"), mixed, local_queue("main", "cq"))

    of.put(parse(gang("asks", 2)))
    (admit,) = run(of).admissions
    assert admit.admission.pod_sets[0].flavors == {"cpu": "gpu"}

    of.put(parse(gang("asks-not", 2, None)))
    (admit,) = run(of).admissions
    assert admit.admission.pod_sets[0].flavors == {"cpu": "plain"}
    assert admit.admission.pod_sets[0].topology is None

    of.put(parse(gang("asks-more", 2, "row")))
    result = run(of)
    assert reasons(result) == {"asks-more": "NoMatchingFlavor"}
    assert 'Flavor "gpu" does not contain the requested level' in message(result, "asks-more")
    assert 'Flavor "plain" does not support TopologyAwareScheduling' in message(result, "asks-more")


def test_where_all_flavors_have_a_topology_pods_need_not_ask() -> None:
    assert places(run(world(gang("a", 5, None)))) == {"h11": 4, "h12": 1}


def test_an_admission_is_written_and_read_in_the_compressed_form() -> None:
    of = world(gang("a", 6))
    result = run(of)
    manifest = lifecycle.admit(gang("a", 6), result.admissions[0], NOW)
    written = status_of(manifest)["admission"]["podSetAssignments"][0]["topologyAssignment"]

    assert written == {
        "levels": [HOSTNAME],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [{"prefix": "h1", "roots": ["1", "2"]}],
                "podCounts": [4, 2],
            }
        ],
    }
    assert expanded(written) == [(("h11",), 4), (("h12",), 2)]
    noun = parse(manifest)
    assert isinstance(noun, Workload)
    assert noun.admission == result.admissions[0].admission


def test_a_restarted_image_knows_what_is_placed() -> None:
    of = world()
    first = world(gang("a", 8))
    manifest = lifecycle.admit(gang("a", 8), run(first).admissions[0], NOW)
    later = gang("b", 8)
    for one in (manifest, later):
        of.put(parse(one))

    assert places(run(of)) == {"h21": 4, "h22": 4}


def test_what_is_placed_counts_even_if_its_flavor_is_heard_of_later() -> None:
    taken = lifecycle.admit(gang("a", 8), run(world(gang("a", 8))).admissions[0], NOW)
    of = world(taken, gang("b", 8))
    of.remove("ResourceFlavor", None, "gpu")
    of.put(parse(FLAVOR))

    assert places(run(of)) == {"h21": 4, "h22": 4}


def test_nodes_that_come_change_and_go_wake_who_waits() -> None:
    of = world(gang("a", 12))
    assert reasons(run(of)) == {"a": "TopologyPlacementFailed"}
    assert run(of).is_empty

    of.put(parse(node("a/r1/h13")))
    assert places(run(of)) == {"h11": 4, "h12": 4, "h13": 4}

    of.put(parse(gang("b", 8)))
    of.put(parse(node("a/r2/h22", unschedulable=True)))
    assert reasons(run(of)) == {"b": "WaitingForQuota"}
    of.put(parse(node("a/r2/h22", ready="Unknown")))
    assert run(of).is_empty  # a node that pods cannot start on is one more of these
    of.put(parse(node("a/r2/h22", 8)))
    assert places(run(of)) == {"h22": 8}

    of.remove("Node", None, "h22")
    of.put(parse(gang("c", 5)))
    assert reasons(run(of)) == {"c": "WaitingForQuota"}


def test_pods_of_others_take_room_and_wake_who_waits_when_they_go() -> None:
    of = world(gang("a", 8))
    for host in ("h11", "h21"):
        of.put_others(host, {"cpu": 1000, "pods": 1})
    assert reasons(run(of)) == {"a": "TopologyPlacementFailed"}
    assert of.pending("cq") == []

    of.put_others("h21", {})

    assert places(run(of)) == {"h21": 4, "h22": 4}


def test_a_node_of_no_flavor_wakes_nobody() -> None:
    of = world(gang("a", 12))
    run(of)
    stranger = node("a/r1/h13")
    stranger["metadata"]["labels"]["pool"] = "cpu"
    of.put(parse(stranger))

    assert of.pending("cq") == []


def test_pods_that_are_done_keep_their_places() -> None:
    of = world(gang("a", 8), gang("b", 8))
    result = run(of)
    manifest = lifecycle.admit(gang("a", 8), result.admissions[0], NOW)
    manifest["status"]["reclaimablePods"] = [{"name": "main", "count": 8}]
    of.put(parse(manifest))
    run(of, after=5)

    assert of.workloads["default", "b"].admission is not None
    of.put(parse(gang("c", 1)))
    assert reasons(run(of)) == {"c": "WaitingForQuota"}

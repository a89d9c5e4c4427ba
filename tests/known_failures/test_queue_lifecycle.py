"""Section L: queues that come, go, and lead nowhere."""

from itertools import permutations

import pytest

from app.core.manifests import Manifest
from tests.builders import flavor
from tests.known_failures.shorthand import FLAVOR, coh, cq, w
from tests.laws.checks import evictions_by_reason
from tests.laws.stage import WHEN_TOLD, Stage


@pytest.mark.parametrize("order", list(permutations(["a1", "a2", "a3", "queue"])))
def test_nothing_keeps_a_deleted_queue(order: tuple[str, ...]) -> None:
    """kueue#10759, #10834, #8552, #8940, #1253: running, evicting or waiting, and gone in any order."""
    jobs = [w(f"a{i}", 2, t=i) for i in (1, 2, 3)]
    stage = Stage(FLAVOR, cq("a", 4), jobs, stopping=WHEN_TOLD).settle()
    stage.evict("a2", "NodeFailures").cycle()
    for name in order:
        stage.remove(
            "LocalQueue" if name == "queue" else "Workload", "a" if name == "queue" else name
        )
    stage.remove("ClusterQueue", "a").cycle()

    assert "a" not in stage.image.tree.queues()
    assert not any(stage.image.holdings.get("a", {}))
    assert stage.add(cq("a", 4)).used("a") == 0


GOING: dict[str, tuple[str, str]] = {
    "its LocalQueue": ("LocalQueue", "a"),
    "its ClusterQueue": ("ClusterQueue", "a"),
    "its flavor": ("ResourceFlavor", "default"),
    "its cohort": ("Cohort", "c"),
}


@pytest.mark.parametrize("what", GOING)
def test_what_vanishes_during_a_cycle_stops_nothing(what: str) -> None:
    """kueue#5295, #5207, #2464, volcano#5091: the others go on, whoever lost its queue is told."""
    stage = Stage(
        FLAVOR,
        coh("c", 4),
        cq("a", 0, coh="c"),
        cq("b", 4),
        w("a1", 9),
        w("a2", 4, t=1),
        w("b1", 4),
    )
    stage.meanwhile = lambda: stage.remove(*GOING[what])

    stage.settle()

    assert stage.running == ([] if what == "its flavor" else ["b1"])
    assert stage.reason("a2") in ("Misconfigured", "Suspended", "ExceedsMaxQuota")
    assert stage.reason("a1") in ("Misconfigured", "Suspended", "ExceedsMaxQuota")


def test_local_queues_of_one_name_are_two() -> None:
    """kueue#10678, #12348, #14434: a namespace sees its own only."""

    def in_namespace(manifest: Manifest, name: str) -> Manifest:
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": name}}

    (a, door), (b, _) = cq("a", 1), cq("b", 1)
    leads_to_b = {**door, "spec": {"clusterQueue": "b"}}
    stage = Stage(FLAVOR, a, b, in_namespace(door, "ns1"), in_namespace(leads_to_b, "ns2"))
    for name, namespace in (("x1", "ns1"), ("x2", "ns2"), ("x3", "ns2")):
        stage.add(in_namespace(w(name, 1, queue="a"), namespace))
    stage.settle()

    assert stage.running == ["x1", "x2"]
    assert [one.key for one in stage.image.parked("b")] == ["ns2/x3"]
    assert stage.image.parked("a") == []


def test_a_queue_without_its_flavor_admits_nothing_until_it_is_there() -> None:
    """kueue#134, #13834."""
    stage = Stage(cq("a", 4), w("a1", 4)).settle()
    assert stage.image.why_inactive("a") == "FlavorNotFound"
    assert (stage.running, stage.reason("a1")) == ([], "Suspended")

    stage.add(flavor()).settle()
    assert stage.image.why_inactive("a") is None
    assert stage.running == ["a1"]


def test_a_queue_removed_under_its_local_queue_is_named_missing() -> None:
    """kueue#13834: the workload says what is missing, and comes back with it."""
    queue = cq("a", 4)[0]
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 5)).settle().remove("ClusterQueue", "a")
    assert stage.reason("a1") == "Misconfigured"
    assert stage.message("a1") == "ClusterQueue a doesn't exist"
    assert stage.waiting == []

    stage.add({**queue, **cq("a", 5)[0]}).settle()
    assert stage.running == ["a1"]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (("LocalQueue", "a"), "LocalQueueStopped"),
        (("ClusterQueue", "a"), "ClusterQueueStopped"),
        (("Workload", "a1"), "Deactivated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_eviction_tells_its_own_reason_and_is_counted_under_it(
    stop: tuple[str, str], reason: str
) -> None:
    """kueue#5995, #6363."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 4)).settle()
    kind, name = stop
    told = {"active": False} if kind == "Workload" else {"stopPolicy": "HoldAndDrain"}

    stage.edit(kind, name, **told).settle()

    assert evictions_by_reason(stage.find("Workload", "a1")) == {(reason, ""): 1}
    assert stage.record.evicted == [{"workload": "default/a1", "reason": reason}]

"""What holds for every world: bounds, wholeness, determinism, and that a decision is made once."""

import subprocess
import sys
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.cycle import schedule
from app.core.decisions import CycleResult
from app.core.image import Image
from app.core.manifests import Manifest
from app.core.node import Node
from app.core.policy import BOTH_STRATEGIES, Policy
from tests.builders import NOW, image, run
from tests.property.strategies import worlds

CAREFUL = Policy(never_overbook=True)
POLICIES = st.sampled_from(
    [CAREFUL, Policy(never_overbook=True, fair_sharing=BOTH_STRATEGIES), Policy()]
)
quick = settings(max_examples=50, deadline=None)


def nodes(of: Image) -> Iterator[Node]:
    for queue in of.tree.queues().values():
        yield queue
        yield from queue.path()


def state(of: Image) -> object:
    return (
        [(node.name, dict(node.usage)) for node in nodes(of)],
        {name: [one.uid for one in of.pending(name)] for name in of.cluster_queues},
        {name: [one.uid for one in of.parked(name)] for name in of.cluster_queues},
        of.cycles,
    )


def cycles(of: Image, policy: Policy, most: int = 12) -> list[CycleResult]:
    return [run(of, policy, after=second) for second in range(most)]


@quick
@given(worlds(), POLICIES.filter(lambda policy: policy.never_overbook))
def test_no_cycle_exceeds_what_a_node_may_use(manifests: list[Manifest], policy: Policy) -> None:
    of = image(*manifests)

    cycles(of, policy)

    for node in nodes(of):
        for fr, used in node.usage.items():
            assert node.raw_available(fr) >= 0 or used == 0
            assert node.raw_available(fr) >= node.local_available(fr) or used == 0


@quick
@given(worlds(), POLICIES)
def test_usage_of_a_node_is_the_sum_of_what_its_children_let_rise(
    manifests: list[Manifest], policy: Policy
) -> None:
    of = image(*manifests)

    cycles(of, policy)

    for name, queue in of.tree.queues().items():
        held: dict[object, int] = {}
        for holding in of.holdings.get(name, {}).values():
            for fr, value in holding.usage.items():
                held[fr] = held.get(fr, 0) + value
        assert {fr: v for fr, v in queue.usage.items() if v} == {f: v for f, v in held.items() if v}
        for node in queue.path():
            for fr, used in node.usage.items():
                risen = (c.usage.get(fr, 0) - c.guaranteed.get(fr, 0) for c in node.children)
                assert used == sum(max(0, over) for over in risen)


@quick
@given(worlds(), POLICIES)
def test_a_gang_is_whole_and_decided_once(manifests: list[Manifest], policy: Policy) -> None:
    of = image(*manifests)
    pods = {
        m["metadata"]["uid"]: m["spec"]["podSets"] for m in manifests if m["kind"] == "Workload"
    }

    results = cycles(of, policy)

    admissions = [one for result in results for one in result.admissions]
    for admission in admissions:
        asked = [(one["name"], one["count"]) for one in pods[admission.uid]]
        assert [(one.name, one.count) for one in admission.admission.pod_sets] == asked
    for decided in (admissions, [one for result in results for one in result.preemptions]):
        uids = [one.uid for one in decided]
        assert len(uids) == len(set(uids))


@quick
@given(worlds(), POLICIES)
def test_deciding_leaves_no_trace_and_is_repeatable(
    manifests: list[Manifest], policy: Policy
) -> None:
    of = image(*manifests)
    for second in range(4):
        before = state(of)
        result = schedule(of, policy, NOW)
        assert state(of) == before
        assert schedule(of, policy, NOW) == result
        run(of, policy, after=second)


@quick
@given(st.data(), worlds(), POLICIES)
def test_the_order_of_objects_does_not_matter(
    data: st.DataObject, manifests: list[Manifest], policy: Policy
) -> None:
    shuffled = data.draw(st.permutations(manifests))

    assert repr(cycles(image(*manifests), policy)) == repr(cycles(image(*shuffled), policy))


@quick
@given(worlds(preempting=False))
def test_strict_queues_never_overtake(manifests: list[Manifest]) -> None:
    for manifest in manifests:
        if manifest["kind"] == "ClusterQueue":
            manifest["spec"]["queueingStrategy"] = "StrictFIFO"
    of = image(*manifests)
    order = {name: [one.uid for one in of.pending(name)] for name in of.cluster_queues}

    served: dict[str, list[str]] = {name: [] for name in order}
    for result in cycles(of, CAREFUL):
        for one in result.admissions:
            served[one.cluster_queue].append(one.uid)

    for name, uids in served.items():
        assert uids == order[name][: len(uids)]


def test_hash_seeds_do_not_show() -> None:
    """The same worlds in two processes whose sets and dicts hash differently."""
    told = [
        subprocess.run(
            [sys.executable, "-m", "tests.property.play"],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]

    assert told[0] == told[1]
    assert b"admissions=(Admit(" in told[0]

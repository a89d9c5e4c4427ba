"""Random queues and workloads with everything a decision may depend on, small enough to contend all the time."""

from typing import Any

from hypothesis import strategies as st

from app.core.manifests import Manifest
from app.core.policy import FairStrategy
from tests.builders import cluster_queue, cohort, flavor, local_queue, workload
from tests.property.strategies import COHORTS, FLAVORS, amounts, quotas

QUEUES = ("q0", "q1", "q2", "q3")

STRATEGIES = st.sampled_from(["BestEffortFIFO", "StrictFIFO"])
OWN = st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])
RECLAIM = st.sampled_from(["LowerPriority", "LowerOrNewerEqualPriority", "Any"])
OTHERS = st.just("Never") | RECLAIM

#: Fair sharing off, or each order of strategies that Kueue accepts.
FAIR = st.sampled_from(
    [
        None,
        None,
        (FairStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,),
        (FairStrategy.LESS_THAN_INITIAL_SHARE,),
        (
            FairStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
            FairStrategy.LESS_THAN_INITIAL_SHARE,
        ),
    ]
)


@st.composite
def preemption(draw: st.DrawFn) -> Manifest:
    reclaim = draw(OTHERS)
    rules: Manifest = {"withinClusterQueue": draw(OWN), "reclaimWithinCohort": reclaim}
    if reclaim != "Never" and draw(st.booleans()):
        threshold = draw(st.none() | st.integers(0, 2))
        rules["borrowWithinCohort"] = {
            "policy": "LowerPriority",
            **({} if threshold is None else {"maxPriorityThreshold": threshold}),
        }
    return rules


@st.composite
def fungibility(draw: st.DrawFn) -> Manifest:
    policy = st.sampled_from(["MayStopSearch", "TryNextFlavor"])
    return {
        "whenCanBorrow": draw(policy),
        "whenCanPreempt": draw(policy),
        "preference": draw(st.sampled_from(["BorrowingOverPreemption", "PreemptionOverBorrowing"])),
    }


def weights() -> st.SearchStrategy[Manifest]:
    return st.sampled_from(["1", "2", "500m", "0"]).map(lambda weight: {"weight": weight})


@st.composite
def queue(draw: st.DrawFn, name: str, /, **fixed: Any) -> Manifest:
    home = draw(st.sampled_from([None, *COHORTS, *COHORTS]))
    spec = {
        "queueingStrategy": draw(STRATEGIES),
        "flavorFungibility": draw(fungibility()),
        "preemption": draw(preemption()),
        "fairSharing": draw(weights()),
        "stopPolicy": draw(st.sampled_from(["None", "None", "None", "Hold", "HoldAndDrain"])),
        **fixed,
    }
    return cluster_queue(name, draw(quotas(limits=home is not None)), cohort=home, **spec)


@st.composite
def some_cohort(draw: st.DrawFn, name: str) -> Manifest:
    """Parents come later in the alphabet, so there is no circle."""
    later = COHORTS[COHORTS.index(name) + 1 :]
    parent = draw(st.sampled_from([None, *later, *later]))
    return cohort(name, parent, draw(st.just({}) | quotas(limits=parent is not None)))


@st.composite
def some_workload(draw: st.DrawFn, name: str) -> Manifest:
    """One or two pod sets; with one, it may be content with less."""
    pods = draw(st.integers(1, 3))
    least = draw(st.none() | st.integers(1, pods))
    made = workload(
        name,
        draw(st.sampled_from(QUEUES)),
        cpu=draw(amounts(0, 4)),
        pods=pods,
        priority=draw(st.integers(0, 2)),
        age=draw(st.integers(0, 5)),
        pod_set={} if least is None else {"minCount": least},
    )
    if draw(st.integers(0, 3)) == 0:
        made["spec"]["podSets"].append({**made["spec"]["podSets"][0], "name": "extra"})
        made["spec"]["podSets"][1].pop("minCount", None)
    return made


@st.composite
def towns(draw: st.DrawFn, /, **fixed: Any) -> list[Manifest]:
    """Two flavors, some cohorts, all queues, a few workloads."""
    return [
        *(flavor(name) for name in FLAVORS),
        *(draw(some_cohort(name)) for name in COHORTS if draw(st.booleans())),
        *(draw(queue(name, **fixed)) for name in QUEUES),
        *(local_queue(name, name) for name in QUEUES),
        *(draw(some_workload(f"w{i}")) for i in range(draw(st.integers(2, 8)))),
    ]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Manifest], list[Manifest]]:
    """A tree full of small workloads, and a few that come late and are larger or more urgent."""
    town = [
        flavor("one"),
        *(draw(some_cohort(name)) for name in COHORTS[1:] if draw(st.booleans())),
        *(draw(_crowded(name)) for name in QUEUES),
        *(local_queue(name, name) for name in QUEUES),
    ]
    small = [
        workload(
            f"s{place}",
            draw(st.sampled_from(QUEUES)),
            cpu=draw(st.integers(1, 3)),
            priority=draw(st.integers(0, 1)),
            age=20 - place,
        )
        for place in range(12)
    ]
    large = [
        workload(
            f"x{place}",
            draw(st.sampled_from(QUEUES)),
            cpu=draw(st.integers(1, 8)),
            priority=draw(st.integers(1, 3)),
            age=5 - place,
        )
        for place in range(5)
    ]
    return [*town, *small], large


@st.composite
def _crowded(draw: st.DrawFn, name: str, /) -> Manifest:
    """Quota by the handful, few limits, and rules that allow a lot."""
    home = draw(st.sampled_from(COHORTS[1:]))
    borrowing = draw(st.sampled_from([None, None, None, "2"]))
    lending = draw(st.sampled_from([None, None, None, "1"]))
    nominal = draw(st.integers(2, 6))
    rules = draw(preemption())
    return cluster_queue(
        name,
        {"one": {"cpu": (str(nominal), borrowing, lending)}},
        cohort=home,
        queueingStrategy="BestEffortFIFO",
        preemption={
            **rules,
            "reclaimWithinCohort": draw(RECLAIM),
        },
        fairSharing=draw(weights()),
    )

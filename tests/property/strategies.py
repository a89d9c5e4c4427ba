"""Small random worlds: a few cohorts, queues and workloads that contend for two flavors."""

from typing import Any

from hypothesis import strategies as st

from app.core.manifests import Manifest
from tests.builders import cluster_queue, cohort, flavor, local_queue, workload

FLAVORS = ("one", "two")
COHORTS = ("x", "y", "z")


def amounts(low: int = 0, high: int = 6) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(str)


@st.composite
def quotas(draw: st.DrawFn, *, limits: bool = True) -> dict[str, dict[str, Any]]:
    chosen = FLAVORS[: draw(st.integers(1, 2))]
    maybe = st.none() | amounts(0, 4)

    def quota() -> Any:
        nominal = draw(amounts())
        if not limits:
            return nominal
        lending = draw(maybe)
        return nominal, draw(maybe), min(lending, nominal) if lending else lending

    return {name: {"cpu": quota()} for name in chosen}


@st.composite
def cohorts(draw: st.DrawFn) -> list[Manifest]:
    """A forest: parents come later in the alphabet, so there is no circle."""
    made = []
    for place, name in enumerate(COHORTS):
        if draw(st.booleans()):
            parent = draw(st.sampled_from([None, *COHORTS[place + 1 :]]))
            own = draw(st.just({}) | quotas(limits=parent is not None))
            made.append(cohort(name, parent, own))
    return made


@st.composite
def queues(draw: st.DrawFn, *, preempting: bool = True) -> list[Manifest]:
    made: list[Manifest] = []
    for place in range(draw(st.integers(1, 4))):
        home = draw(st.sampled_from([None, *COHORTS]))
        spec: dict[str, Any] = {
            "queueingStrategy": draw(st.sampled_from(["BestEffortFIFO", "StrictFIFO"])),
            "flavorFungibility": {
                "whenCanBorrow": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
                "whenCanPreempt": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
            },
        }
        if preempting:
            own = ["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
            spec["preemption"] = {
                "withinClusterQueue": draw(st.sampled_from(own)),
                "reclaimWithinCohort": draw(st.sampled_from(["Never", "LowerPriority", "Any"])),
            }
        quota = draw(quotas(limits=home is not None))
        made += [cluster_queue(f"q{place}", quota, cohort=home, **spec)]
        made += [local_queue(f"q{place}", f"q{place}")]
    return made


@st.composite
def workloads(draw: st.DrawFn, *, most: int = 8) -> list[Manifest]:
    return [
        workload(
            f"w{place}",
            f"q{draw(st.integers(0, 3))}",
            cpu=draw(amounts(0, 4)),
            pods=draw(st.integers(1, 3)),
            priority=draw(st.integers(0, 2)),
            age=draw(st.integers(0, 3)),
        )
        for place in range(draw(st.integers(1, most)))
    ]


@st.composite
def worlds(draw: st.DrawFn, *, preempting: bool = True) -> list[Manifest]:
    return [
        *(flavor(name) for name in FLAVORS),
        *draw(cohorts()),
        *draw(queues(preempting=preempting)),
        *draw(workloads()),
    ]

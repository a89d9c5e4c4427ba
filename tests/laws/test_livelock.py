"""I17: with nothing new coming in, evictions come to an end, and then nothing is left idle.

Kueue's own rules have worlds in which workloads preempt each other for ever: about one random world in a hundred with
fair sharing, far fewer without. `Policy.break_loops` is our rule against it; the worlds that were recorded turning for
ever are played by the conformance suite, here random ones are.
"""

from collections import Counter
from collections.abc import Sequence

from hypothesis import event, given
from hypothesis import strategies as st

from app.core.manifests import Manifest
from app.core.policy import FairStrategy
from tests.laws.idle import nothing_idles
from tests.laws.stage import A_CYCLE_LATER, AT_ONCE, Stage
from tests.laws.strategies import FAIR, crowds, towns

MOST_FOR_ONE = 2  # evictions of one workload for the sake of the same other

STOPPING = st.sampled_from([AT_ONCE, A_CYCLE_LATER])


def come_to_rest(stage: Stage) -> None:
    stage.settle()

    pairs = Counter((one["by"], one["workload"]) for one in stage.record.preempted)
    most = max(pairs.values(), default=0)
    event(f"{most} times at most")
    assert stage.is_quiet
    assert most <= MOST_FOR_ONE
    nothing_idles(stage)


@given(towns(stopPolicy="None"), FAIR, STOPPING)
def test_any_town_comes_to_rest(
    manifests: list[Manifest], fair: Sequence[FairStrategy] | None, stopping: str
) -> None:
    come_to_rest(Stage(manifests, fair=fair, stopping=stopping, watched=False))


@given(crowds(), FAIR, STOPPING)
def test_a_crowd_that_preempts_comes_to_rest(
    crowd: tuple[list[Manifest], list[Manifest]],
    fair: Sequence[FairStrategy] | None,
    stopping: str,
) -> None:
    town, late = crowd
    stage = Stage(town, fair=fair, stopping=stopping, watched=False)
    come_to_rest(stage)
    stage.record.preempted.clear()

    come_to_rest(stage.add(late))

"""Law 6 where it is hard: trees full of small workloads, and large ones that want in."""

from collections.abc import Sequence

from hypothesis import event, given
from hypothesis import strategies as st

from app.core.manifests import Manifest
from app.core.policy import FairStrategy
from tests.laws.stage import A_CYCLE_LATER, AT_ONCE, Stage
from tests.laws.strategies import FAIR, crowds
from tests.laws.victims import victims_are_needed


@given(crowds(), FAIR, st.sampled_from([AT_ONCE, A_CYCLE_LATER]))
def test_nobody_goes_for_nothing(
    crowd: tuple[list[Manifest], list[Manifest]],
    fair: Sequence[FairStrategy] | None,
    stopping: str,
) -> None:
    town, late = crowd
    stage = Stage(town, fair=fair, stopping=stopping, watched=False).settle()
    stage.is_watched = True

    stage.add(late)
    event(f"{min(victims_are_needed(stage), 5)} victims at once")
    stage.cycle(4)

    event(f"{len(stage.record.preempted)} preempted")

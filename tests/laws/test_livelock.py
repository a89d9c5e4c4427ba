"""I17: with nothing new coming in, evictions come to an end, and then nothing is left idle.

Kueue's own rules have worlds in which workloads preempt each other for ever: about one random world in a hundred with
fair sharing, far fewer without; some are recorded in the vectors' family ``livelock``. We follow those rules, so for
now a world that does not come to rest is only counted. *The place to change* once something breaks such loops is
`LOOPS_ARE_BROKEN`: then every world must come to rest, recorded ones included.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from app.core.manifests import Manifest
from app.core.policy import FairStrategy
from tests.conformance.vectors import Scenario, scenarios
from tests.conformance.world import policy_of
from tests.laws.checks import evictions_by_reason
from tests.laws.idle import nothing_idles
from tests.laws.stage import A_CYCLE_LATER, AT_ONCE, Stage
from tests.laws.strategies import FAIR, towns

LOOPS_ARE_BROKEN = False

MOST_EVICTIONS = 2  # of one workload, until the world is at rest

_RECORDED = Path(__file__).resolve().parents[2].parent / "shared" / "vectors" / "livelock.jsonl"


def most_evictions(stage: Stage) -> int:
    return max(sum(evictions_by_reason(one).values()) for one in stage.workloads())


@given(towns(stopPolicy="None"), FAIR, st.sampled_from([AT_ONCE, A_CYCLE_LATER]))
def test_evictions_come_to_an_end(
    manifests: list[Manifest], fair: Sequence[FairStrategy] | None, stopping: str
) -> None:
    stage = Stage(manifests, fair=fair, stopping=stopping, watched=False).settle()

    event(f"{'at rest' if stage.is_quiet else 'turns for ever'}, fair sharing: {bool(fair)}")
    if not stage.is_quiet and not LOOPS_ARE_BROKEN:
        return
    assert stage.is_quiet
    assert most_evictions(stage) <= MOST_EVICTIONS
    nothing_idles(stage)


def _recorded() -> list[Scenario]:
    return list(scenarios(_RECORDED)) if _RECORDED.is_file() else []


@pytest.mark.skipif(not LOOPS_ARE_BROKEN, reason="nothing breaks the loops of Kueue's rules yet")
@pytest.mark.parametrize("scenario", _recorded()[::8], ids=lambda one: str(one["id"]))
def test_recorded_loops_come_to_an_end(scenario: Scenario) -> None:
    config = scenario["config"]
    stage = Stage(
        scenario["objects"],
        fair=policy_of(config).fair_sharing,
        stopping=A_CYCLE_LATER if config.get("evictions") == "delayed" else AT_ONCE,
        watched=False,
    )
    for step in scenario["steps"]:
        stage.play(step)

    assert stage.is_quiet

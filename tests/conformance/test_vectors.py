"""The recorded decisions of Kueue, under pytest.

They live outside the repository: ``SLUICE_VECTORS`` names their folder, or they lie in ``../shared/vectors`` beside the
checkout. With the variable set every scenario is played; otherwise a tenth of them, to stay quick.
"""

import os
from pathlib import Path

import pytest

from tests.conformance.runner import LIVELOCK, run
from tests.conformance.vectors import families, scenarios

_NAMED = os.environ.get("SLUICE_VECTORS")
_FOLDER = Path(_NAMED or Path(__file__).resolve().parents[2].parent / "shared" / "vectors")
_STRIDE = 1 if _NAMED else 10

#: Scenarios that Kueue decides in a way we do not follow, and why.
DEPARTURES = {
    "edge-00123": "Kueue's usage stays saturated after the workload that saturated it is gone.",
}

#: Families that are no target: they record what a careful scheduler does better.
_LATER = ("livelock", "quirks")


def _targets() -> list[str]:
    if not _FOLDER.is_dir():
        return []
    return [family for family in families(_FOLDER) if not family.startswith(_LATER)]


@pytest.mark.timeout(600)
@pytest.mark.skipif(not _targets(), reason=f"no vectors in {_FOLDER}; name them by SLUICE_VECTORS")
@pytest.mark.parametrize("family", _targets())
def test_family_is_decided_as_kueue_does(family: str) -> None:
    assert _differing(family, breaker=False) == {}


@pytest.mark.timeout(600)
@pytest.mark.skipif(not _targets(), reason=f"no vectors in {_FOLDER}; name them by SLUICE_VECTORS")
@pytest.mark.parametrize("family", [*_targets(), LIVELOCK])
def test_breaking_loops_changes_nothing_but_loops(family: str) -> None:
    assert _differing(family, breaker=True) == {}


def _differing(family: str, *, breaker: bool) -> dict[str, str]:
    chosen = list(scenarios(families(_FOLDER)[family]))[::_STRIDE]
    found = {one["id"]: run(one, breaker=breaker).difference for one in chosen}
    return {key: text for key, text in found.items() if text and key not in DEPARTURES}

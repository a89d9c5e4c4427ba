"""Placements decided by Kueue itself, line by line.

They live outside the repository: ``SLUICE_TAS_GOLDEN`` names the file, or it lies beside the checkout in
``../shared/traces/kueue/tas_golden.jsonl``.
"""

import pytest

from tests.unit.core.placement.golden import (
    GOLDEN,
    answer,
    cases,
    demand_of,
    site_of,
)

pytestmark = pytest.mark.skipif(not GOLDEN.is_file(), reason=f"no golden placements at {GOLDEN}")

#: Lines where Kueue's own answer is no placement, and why.
DEPARTURES = {97: "Kueue hands out 6 of 18 pods and no leader; we place them all."}


def test_every_line_is_placed_as_kueue_does() -> None:
    asked = list(cases())
    wrong = []
    for case in asked:
        expected = (case["workers"], -1 if case["workers"] is None else case["leader"])
        found = answer(site_of(case).place(demand_of(case)))
        if found != expected and case["id"] not in DEPARTURES:
            wrong.append((case["id"], expected, found))

    assert len(asked) == 1500
    assert wrong == []


def test_a_departure_places_every_pod() -> None:
    for case in cases():
        if case["id"] in DEPARTURES:
            workers, leader = answer(site_of(case).place(demand_of(case)))
            assert workers is not None
            assert sum(pods for _, pods in workers) == case["count"]
            assert leader >= 0
            assert all(pods <= case["free"][host] for host, pods in workers)

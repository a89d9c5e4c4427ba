"""Whose turn is it among jobs that Kubernetes says were created in the same second?"""

from datetime import UTC, datetime, timedelta

import pytest

from app.intake.jobs import _created_at

SECOND = datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)
JOB = {"metadata": {"creationTimestamp": "2026-01-01T12:00:05Z"}}
SEEN_S = [0.0, 0.02, 0.5, 0.99, 1.4, 1.99, 2.01, 3.0, 15.0, 90.0]


def created_at(seen_s: float) -> datetime:
    return _created_at(JOB, SECOND + timedelta(seconds=seen_s))


def test_those_seen_later_come_later() -> None:
    times = [created_at(seen_s) for seen_s in SEEN_S]
    assert times == sorted(set(times))


@pytest.mark.parametrize("seen_s", [*SEEN_S, 3600.0])
def test_it_stays_within_the_second_that_the_job_says(seen_s: float) -> None:
    assert SECOND <= created_at(seen_s) < SECOND + timedelta(seconds=1)


def test_clocks_that_differ_do_no_harm() -> None:
    assert created_at(-3) == SECOND

"""Go's durations."""

from datetime import timedelta

import pytest

from app.intake.configuration.durations import parse


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("30m", 1800),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("250ms", 0.25),
        ("1h0m0s", 3600),
        ("-5s", -5),
        ("+5s", 5),
        ("10us", 1e-5),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "5 s", "s", "5d", "1h 30m", "٣s", "1e3s", "5s\n", "9" * 20 + "h", "9" * 99]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|years"):
        parse(text)

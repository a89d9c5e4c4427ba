"""Quantities: what they mean, how they are written, and that no text is expensive."""

import time

import pytest

from app.core import resources
from app.core.quantity import UNLIMITED, QuantityError, canonical, parse


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [
        ("1", 1000, 1),
        (2, 2000, 2),
        (0.5, 500, 1),
        ("1500m", 1500, 2),
        ("1Gi", 1024**3 * 1000, 1024**3),
        ("1.5Ki", 1536000, 1536),
        (".5", 500, 1),
        ("2.", 2000, 2),
        ("1e3", 1000000, 1000),
        ("1E", 10**21, 10**18),
        ("1E2", 100000, 100),
        ("1n", 1, 1),
        ("0.1n", 1, 1),
        ("-1500m", -1500, -2),
        ("+3", 3000, 3),
        ("0", 0, 0),
    ],
)
def test_amounts_round_away_from_zero(text: object, milli: int, whole: int) -> None:
    quantity = parse(text)

    assert (min(milli, UNLIMITED), whole) == (quantity.milli, quantity.whole)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000k", "1M"),
        ("12e2", "1200"),
        ("12e5", "1200e3"),
        ("0Gi", "0"),
        ("0.0000000001", "1n"),
        (1000, "1k"),
    ],
)
def test_canonical_form_keeps_the_family(text: object, shown: str) -> None:
    assert canonical(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1 ", "1_000", "NaN", "Infinity", "inf", "1KiKi", "1kk", "e3", "m", "."),
        *("--1", "1e", "0x10", "1E999999", "1e-99999", "٣", "1\n", "9" * 65),
        *(10**70, None, True, [], {}),
    ],
)
def test_what_is_no_quantity_is_refused_at_once(text: object) -> None:
    started = time.perf_counter()

    with pytest.raises(QuantityError) as refused:
        parse(text)

    assert time.perf_counter() - started < 0.05
    assert str(refused.value).endswith(".")


def test_beyond_int64_is_unlimited() -> None:
    assert parse("100E").whole == UNLIMITED
    assert parse("1e40").milli == UNLIMITED
    assert resources.plus(UNLIMITED, 1) == UNLIMITED
    assert resources.minus(UNLIMITED, 1) == UNLIMITED
    assert resources.times(2**62, 2) == UNLIMITED


@pytest.mark.parametrize(
    ("resource", "text", "amount", "written"),
    [
        ("cpu", "1500m", 1500, "1500m"),
        ("cpu", "0.0001", 1, "1m"),
        ("memory", "1Gi", 1024**3, "1Gi"),
        ("memory", "1.5", 2, "2"),
        ("nvidia.com/gpu", "8", 8, "8"),
        ("hugepages-2Mi", "4Mi", 4 * 1024**2, "4Mi"),
    ],
)
def test_each_resource_has_its_unit(resource: str, text: str, amount: int, written: str) -> None:
    assert resources.amount(resource, text) == amount
    assert resources.written(resource, amount) == written

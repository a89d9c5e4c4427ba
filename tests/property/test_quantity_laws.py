"""The quantity parser against exact fractions."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from app.core.quantity import UNLIMITED, QuantityError, canonical, parse

SUFFIXES = {
    **{
        s: Fraction(10) ** p
        for s, p in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{s}i": Fraction(2) ** (10 * n) for n, s in enumerate("KMGTPE", start=1)},
    "": Fraction(1),
    **{f"e{n}": Fraction(10) ** n for n in range(-9, 19)},
}


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Fraction]:
    whole = draw(st.integers(0, 10**12))
    part = draw(st.text("0123456789", max_size=12))
    sign = draw(st.sampled_from(["", "-", "+"]))
    suffix = draw(st.sampled_from(sorted(SUFFIXES)))
    number = Fraction(int(f"{whole}{part}"), 10 ** len(part)) * SUFFIXES[suffix]
    return f"{sign}{whole}.{part}{suffix}", -number if sign == "-" else number


def away_from_zero(value: Fraction) -> int:
    up = -(-abs(value).numerator // abs(value).denominator)
    return up if value >= 0 else -up


@given(written())
def test_parsing_agrees_with_exact_arithmetic(case: tuple[str, Fraction]) -> None:
    text, exact = case
    nano = Fraction(away_from_zero(exact * 10**9), 10**9)

    quantity = parse(text)

    for unit, found in ((1000, quantity.milli), (1, quantity.whole)):
        wanted = away_from_zero(nano * unit)
        assert found == max(-UNLIMITED, min(wanted, UNLIMITED))


@given(written())
def test_the_canonical_form_means_the_same_and_is_a_fixed_point(case: tuple[str, Fraction]) -> None:
    once = canonical(case[0])

    assert parse(once) == parse(case[0])
    assert canonical(once) == once


@given(st.text(max_size=70))
def test_any_text_is_a_quantity_or_refused_in_words(text: str) -> None:
    assert _refusal(text) is None or str(_refusal(text)).endswith(".")


def _refusal(text: str) -> QuantityError | None:
    try:
        parse(text)
    except QuantityError as refused:
        return refused
    return None

"""Do lines come out whole, however the network cuts them?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube.lines import LineSplitter, LineTooLong

lines = st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")), max_size=20)


@given(lines, st.lists(st.integers(1, 9), min_size=1))
def test_cutting_does_not_matter(written: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(line + b"\n" for line in written)
    splitter = LineSplitter()
    read: list[bytes] = []
    turn = 0
    while raw:
        size = cuts[turn % len(cuts)]
        read += splitter.feed(raw[:size])
        raw, turn = raw[size:], turn + 1
    assert read == [line for line in written if line.strip()]


def test_what_has_no_end_is_held_back() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a\nb") == [b"a"]
    assert splitter.feed(b"c\n") == [b"bc"]


def test_a_line_beyond_the_cap_is_an_error_and_one_at_the_cap_is_not() -> None:
    splitter = LineSplitter(most_bytes=4)
    assert splitter.feed(b"1234") == []
    assert splitter.feed(b"\n12345\n") == [b"1234", b"12345"]
    with pytest.raises(LineTooLong):
        splitter.feed(b"12345")

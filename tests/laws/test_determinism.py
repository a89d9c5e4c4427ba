"""Law 7: the same state gives the same bytes, however it was read and whatever a hash says."""

import subprocess
import sys

import pytest


def told(hash_seed: str, order: str) -> bytes:
    """What `play` prints in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.laws.play", order],
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        timeout=100,
    ).stdout


@pytest.fixture(scope="module")
def usual() -> bytes:
    return told("1", "1")


def test_something_is_decided(usual: bytes) -> None:
    assert usual.count(b"Admit(") > 10
    assert usual.count(b"Preempt(") > 2


@pytest.mark.parametrize(("hash_seed", "order"), [("2", "1"), ("1", "2")], ids=["hash", "order"])
def test_neither_hashes_nor_the_order_of_objects_show(
    usual: bytes, hash_seed: str, order: str
) -> None:
    assert told(hash_seed, order) == usual

"""How does a test wait for what another process will do? By asking again, quickly, up to a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE_S = 0.05


def eventually(question: Callable[[], T | None], within_s: float = 20.0) -> T:
    """The first answer that is true; fails with the last one. A failed assertion counts as no."""
    deadline = time.monotonic() + within_s
    while True:
        answer: T | None = None
        try:
            answer = question()
            why = f"the last answer was {answer!r}"
        except AssertionError as error:
            why = str(error)
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s: {why}")
        time.sleep(PAUSE_S)


def always(question: Callable[[], bool], for_s: float) -> None:
    """Fails as soon as the answer is no."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert question()
        time.sleep(PAUSE_S)

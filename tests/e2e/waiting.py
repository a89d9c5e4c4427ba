"""How does a test wait for what another process will do? By asking again, quickly, up to a limit."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

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


def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Run it in this thread, on a loop of its own: processes started in it are tied to the life of their thread."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)

"""How long does a request wait for Postgres before it goes on without it, or is refused?

A server that is gone refuses connections at once; one that is frozen, or behind a dead link, says nothing at all, and
its own time limits do not run. So all that a request wants of Postgres is done in a task of its own, which is awaited
for a bounded time; the task goes on, because cancelling into the driver would wait for the same silence. Questions are
small reads, answered in milliseconds by a server that lives: while an old one is unanswered, nobody waits long for a
new one, and no write begins.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from app.errors import Unavailable

T = TypeVar("T")

QUESTION_S = 3.0
WRITE_S = 15.0
"""Longer than a write takes that waits for its locks at every attempt."""
LEAST_S = 0.05


class Patience:
    """One for all that one worker wants of one database."""

    def __init__(self) -> None:
        self._asked_at: dict[asyncio.Task[Any], float] = {}  # oldest first
        self._writing: set[asyncio.Task[Any]] = set()

    async def ask(self, question: Coroutine[Any, Any, T]) -> T:
        """The answer, or Unavailable if it does not come in time."""
        left = self._left()
        loop = asyncio.get_running_loop()
        task = loop.create_task(question)
        self._asked_at[task] = loop.time()
        task.add_done_callback(self._ended)
        return await _outcome(task, left)

    async def write(self, work: Coroutine[Any, Any, T]) -> T:
        """Work that must not begin when its end could not be awaited. Raises Unavailable."""
        if self._left() <= LEAST_S:
            work.close()
            raise Unavailable("Postgres does not answer; nothing was written, try again.")
        task = asyncio.get_running_loop().create_task(work)
        self._writing.add(task)
        task.add_done_callback(self._ended)
        return await _outcome(task, WRITE_S)

    def _left(self) -> float:
        """How long a new question may wait, given how long the oldest one has waited."""
        if not self._asked_at:
            return QUESTION_S
        oldest = next(iter(self._asked_at.values()))
        return max(LEAST_S, oldest + QUESTION_S - asyncio.get_running_loop().time())

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._asked_at.pop(task, None)
        self._writing.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may be gone by now


async def _outcome(task: asyncio.Task[T], limit_s: float) -> T:
    done, _ = await asyncio.wait({task}, timeout=limit_s)
    if not done:
        raise Unavailable("Postgres does not answer in time; try again.")
    return task.result()

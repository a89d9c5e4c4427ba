"""Keeps one loop alive: what fails is logged once in a line and tried again, later each time.

This is the only place that catches every exception. Two kinds pass through: being cancelled, and `LeaseLost`, after
which none of the leader's loops may go on. A loop that runs in a task group ends with all that went wrong in it at
once: it is judged by what is in there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import structlog

from app.errors import AppError, LeaseLost

log = structlog.get_logger("engine")

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0


async def keep(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    """Run `loop` until it returns by itself. A run that lasted longer than the longest pause starts afresh."""
    pause_s = FIRST_PAUSE_S
    clock = asyncio.get_running_loop().time
    while True:
        began = clock()
        try:
            return await loop()
        except Exception as error:  # noqa: BLE001 (see above)
            causes = list(leaves(error))
        for cause in causes:
            if isinstance(cause, LeaseLost):
                raise cause
            _tell(name, cause, pause_s)
        if clock() - began > LONGEST_PAUSE_S:
            pause_s = FIRST_PAUSE_S
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """What really happened: the error itself, or all that a task group wrapped."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for one in error.exceptions:
        yield from leaves(one)


def _tell(name: str, cause: BaseException, pause_s: float) -> None:
    if isinstance(cause, AppError):
        log.warning("loop.failed", loop=name, error=cause.message, again_in_s=pause_s)
    else:
        log.error("loop.crashed", loop=name, again_in_s=pause_s, exc_info=cause)

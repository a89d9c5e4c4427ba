"""Keeps one loop alive: what fails is logged once in a line and tried again, later each time.

This is the only place that catches every exception. Two kinds pass through: being cancelled, and `LeaseLost`, after
which none of the leader's loops may go on.
"""

import asyncio
from collections.abc import Awaitable, Callable

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
        except LeaseLost:
            raise
        except AppError as error:
            log.warning("loop.failed", loop=name, error=error.message, again_in_s=pause_s)
        except Exception:
            log.exception("loop.crashed", loop=name, again_in_s=pause_s)
        if clock() - began > LONGEST_PAUSE_S:
            pause_s = FIRST_PAUSE_S
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

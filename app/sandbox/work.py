"""Which keys have to be looked at, now or later?

A queue of keys, never of operations: adding a key that is already waiting changes nothing, and a key that is added
while it is being worked on is worked on once more. `work` runs one key at a time per worker; an error is logged and the
key comes back after a pause that doubles.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from app.errors import AppError

K = TypeVar("K", bound=Hashable)

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 5.0


class WorkQueue(Generic[K]):
    def __init__(self, name: str) -> None:
        self.name = name
        self._waiting: dict[K, None] = {}  # ordered, each once
        self._working: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()

    def add(self, key: K) -> None:
        self._waiting[key] = None
        self._wake.set()

    def add_later(self, key: K, delay_s: float) -> None:
        """Add after a delay; of several, the earliest counts."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + delay_s:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_later(max(delay_s, 0), self._due, key)

    async def work(self, handle: Callable[[K], Awaitable[None]]) -> None:
        """Work for ever; several tasks may do so at once, never on the same key."""
        while True:
            key = self._take()
            if key is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            try:
                await self._handle(key, handle)
            finally:
                self._working.discard(key)
                self._wake.set()
            await asyncio.sleep(0)  # handlers may never wait; the loop must go round all the same

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _take(self) -> K | None:
        key = next((one for one in self._waiting if one not in self._working), None)
        if key is not None:
            del self._waiting[key]
            self._working.add(key)
        return key

    async def _handle(self, key: K, handle: Callable[[K], Awaitable[None]]) -> None:
        try:
            await handle(key)
        except Exception as error:  # noqa: BLE001 (one poisoned key must not stop the others)
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            pause_s = min(_FIRST_PAUSE_S * 2 ** min(failures, 10), _LONGEST_PAUSE_S)
            self.add_later(key, pause_s)
            structlog.get_logger().warning(
                "sandbox key failed",
                queue=self.name,
                key=key,
                error=str(error),
                exc_info=not isinstance(error, AppError),
            )
        else:
            self._failures.pop(key, None)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

"""When is it worth looking into the feed again?

Each commit sends one NOTIFY with its newest change number. That is a hint and no more: hints are merged, a broken
connection loses some, and so the iterator also yields after each reconnection and after `poll_s` without any. Whoever
gets one reads `changes.since` its own position. The connection is dedicated, outside any pool, and belongs to the task
that iterates: close the iterator (`contextlib.aclosing`) when done.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from app.store.changes import CHANNEL
from app.store.connect import connect
from app.store.failures import DRIVER_ERRORS

_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 3.0


async def listen(
    url: str, *, poll_s: float = 3.0, application_name: str = "sluice-listen"
) -> AsyncGenerator[int | None, None]:
    """Yield whenever something may have been committed: its number if a hint told it, None otherwise.

    Never ends and never raises for a lost server; while Postgres is away it yields None every `poll_s` at the latest.
    """
    ears = _Ears()
    connecting: asyncio.Task[None] | None = None
    try:
        while True:
            if connecting is None and ears.deaf:
                connecting = asyncio.create_task(ears.connect(url, application_name))
            if connecting is not None and connecting.done():
                connecting = None
            yield await ears.hear(poll_s)
    finally:
        if connecting is not None:
            connecting.cancel()
            await asyncio.wait({connecting})
        await ears.close()


class _Ears:
    """The listening connection and the newest hint that nobody has taken yet."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._rung = asyncio.Event()
        self._number: int | None = None

    @property
    def deaf(self) -> bool:
        return self._connection is None or self._connection.is_closed()

    async def connect(self, url: str, application_name: str) -> None:
        """Try until it works, slower each time; ring then, for what was missed."""
        delay = _FIRST_RETRY_S
        while self.deaf:
            try:
                await self._connect_once(url, application_name)
            except DRIVER_ERRORS:
                await asyncio.sleep(delay)
                delay = min(delay * 2, _LAST_RETRY_S)
        self._rung.set()

    async def _connect_once(self, url: str, application_name: str) -> None:
        connection = await connect(url, application_name=application_name)
        connection.add_termination_listener(lambda _: self._rung.set())
        await connection.add_listener(CHANNEL, self._take)
        self._connection = connection

    async def hear(self, patience_s: float) -> int | None:
        try:
            await asyncio.wait_for(self._rung.wait(), patience_s)
        except TimeoutError:
            return None
        self._rung.clear()
        number, self._number = self._number, None
        return number

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()

    def _take(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        self._number = max(int(str(payload)), self._number or 0)
        self._rung.set()

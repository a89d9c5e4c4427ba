"""How is one connection used, so that nobody's cancellation can harm it?

Theory of operation. A request may be cancelled at any await: a browser leaves, a server shuts down. Cancelling *into*
the driver leaves backends running outside the pool's count when it comes through an anyio scope, which cancels again
at every await, also those that clean up. So nothing here is ever cancelled: each statement, the commit and the return
of the connection run in tasks of their own, which the caller only awaits behind a shield. A cancelled caller leaves at
once; `close` then waits, in the background, for the running statement, rolls back and returns the connection. How long
that may take is bounded by the server's statement timeout, which every connection sets.

A lane carries one statement at a time; two at once are a bug of the caller.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import CursorResult, Executable
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.errors import InvariantBroken
from app.store.failures import translated

T = TypeVar("T")

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


class Runs(Protocol):
    """Whatever runs a statement inside a transaction: a lane, a read or a write transaction."""

    async def execute(
        self, statement: Executable, parameters: Parameters = None
    ) -> CursorResult[Any]: ...


class Lane:
    """One checked-out connection with its transaction; made by `open_lane`, always to be closed."""

    def __init__(self, connection: AsyncConnection, background: set[asyncio.Task[Any]]) -> None:
        self._connection = connection
        self._background = background
        self._running: asyncio.Task[Any] | None = None

    async def execute(
        self, statement: Executable, parameters: Parameters = None
    ) -> CursorResult[Any]:
        """Run one statement; the first one begins the transaction. A list of parameters is one bulk call."""
        with translated():
            return await self._alone(self._connection.execute(statement, parameters))

    async def commit(self) -> None:
        with translated(committing=True):
            await self._alone(self._connection.commit())

    async def close(self) -> None:
        """Roll back what was not committed and give the connection back; safe to cancel."""
        await asyncio.shield(self._spawn(self._give_back()))

    async def _alone(self, work: Coroutine[Any, Any, T]) -> T:
        if self._running is not None and not self._running.done():
            work.close()
            raise InvariantBroken("Two statements at once on one transaction.")
        task = self._running = self._spawn(work)
        return await asyncio.shield(task)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return spawn(work, self._background)

    async def _give_back(self) -> None:
        if self._running is not None and not self._running.done():
            await asyncio.wait({self._running})
        try:
            await self._connection.close()
        except Exception:  # noqa: BLE001 - a connection that cannot roll back is thrown away, whatever the cause
            await self._connection.invalidate()


async def open_lane(engine: AsyncEngine, background: set[asyncio.Task[Any]]) -> Lane:
    """Check a connection out; if the caller is cancelled meanwhile, it goes back by itself."""
    connection = engine.connect()
    starting = spawn(_start(connection), background)
    try:
        with translated():
            await asyncio.shield(starting)
    except asyncio.CancelledError:
        spawn(_return_unused(connection, starting), background)
        raise
    return Lane(connection, background)


def spawn(work: Coroutine[Any, Any, T], background: set[asyncio.Task[Any]]) -> asyncio.Task[T]:
    """Run in a task that somebody remembers, and whose failure is not reported twice."""
    task = asyncio.get_running_loop().create_task(work)
    background.add(task)
    task.add_done_callback(background.discard)
    task.add_done_callback(_mark_retrieved)
    return task


def _mark_retrieved(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


async def _start(connection: AsyncConnection) -> None:
    await connection.start()


async def _return_unused(connection: AsyncConnection, starting: asyncio.Task[None]) -> None:
    await asyncio.wait({starting})
    if starting.exception() is None:
        await connection.close()

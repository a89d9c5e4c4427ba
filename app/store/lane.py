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
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeVar

import asyncpg
from sqlalchemy import Executable

from app.errors import InvariantBroken
from app.store.connect import CONNECT_TIMEOUT_S
from app.store.failures import DRIVER_ERRORS, is_server_lost, translated
from app.store.statements import prepare

T = TypeVar("T")

Parameters = Mapping[str, Any]
Row = Mapping[str, Any]
Begin = Literal["begin", "begin isolation level repeatable read, read only"]


class Runs(Protocol):
    """Whatever runs statements inside a transaction: a lane, a read or a write transaction."""

    async def rows(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Sequence[Row]: ...

    async def value(self, statement: Executable, parameters: Parameters | None = None) -> Any: ...

    async def each(self, statement: Executable, parameters: Sequence[Parameters]) -> None: ...


class Lane:
    """One checked-out connection in a transaction; made by `open_lane`, always to be closed."""

    def __init__(self, pool: Any, connection: Any, background: set[asyncio.Task[Any]]) -> None:
        self._pool = pool
        self._connection = connection
        self._background = background
        self._running: asyncio.Task[Any] | None = None

    async def rows(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Sequence[Row]:
        """Run one statement and return what it gives."""
        prepared = prepare(statement)
        arguments = prepared.arguments(parameters or {})
        rows: Sequence[Row] = await self._alone(
            lambda: self._connection.fetch(prepared.sql, *arguments)
        )
        return rows

    async def value(self, statement: Executable, parameters: Parameters | None = None) -> Any:
        """The first column of the first row; None where there is no row."""
        found = await self.rows(statement, parameters)
        return next(iter(found[0].values())) if found else None

    async def each(self, statement: Executable, parameters: Sequence[Parameters]) -> None:
        """Run one statement for each of many parameters, in their order, in one go."""
        if len(parameters) == 1:
            await self.rows(statement, parameters[0])
        elif parameters:
            prepared = prepare(statement)
            arguments = [prepared.arguments(one) for one in parameters]
            await self._alone(lambda: self._connection.executemany(prepared.sql, arguments))

    async def commit(self) -> None:
        done = await self._alone(lambda: self._connection.execute("commit"), committing=True)
        if done != "COMMIT":
            raise InvariantBroken(
                "A statement had failed, and its transaction was to be committed."
            )

    async def close(self) -> None:
        """Roll back what was not committed and give the connection back; safe to cancel."""
        await asyncio.shield(spawn(self._give_back(), self._background))

    async def _alone(
        self, call: Callable[[], Coroutine[Any, Any, Any]], *, committing: bool = False
    ) -> Any:
        if self._running is not None and not self._running.done():
            raise InvariantBroken("Two statements at once on one transaction.")
        with translated(committing=committing):
            self._running = task = spawn(_watched(self._pool, call), self._background)
            return await asyncio.shield(task)

    async def _give_back(self) -> None:
        if self._running is not None and not self._running.done():
            await asyncio.wait({self._running})
        await _give_back(self._pool, self._connection)


async def open_lane(pool: Any, begin: Begin, background: set[asyncio.Task[Any]]) -> Lane:
    """Check a connection out and begin; if the caller is cancelled meanwhile, it goes back by itself."""
    starting = spawn(_start(pool, begin), background)
    try:
        with translated():
            return Lane(pool, await asyncio.shield(starting), background)
    except asyncio.CancelledError:
        spawn(_return_unused(pool, starting), background)
        raise


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


async def _watched(pool: Any, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Make the call; if it shows that the server is lost, no connection of that age is used again."""
    try:
        return await call()
    except asyncpg.PostgresError as error:
        if is_server_lost(error):
            await pool.expire_connections()
        raise


async def _start(pool: Any, begin: Begin) -> Any:
    """Begin on a pooled connection; if that shows it to be dead, on a new one: nothing has been said on it yet."""
    try:
        return await _begin(pool, begin)
    except TimeoutError:  # trying once more would only take as long again
        raise
    except DRIVER_ERRORS:
        await pool.expire_connections()
        return await _begin(pool, begin)


async def _begin(pool: Any, begin: Begin) -> Any:
    connection = await pool.acquire(timeout=CONNECT_TIMEOUT_S)
    try:
        await connection.execute(begin)
    except BaseException:
        await _give_back(pool, connection)
        raise
    return connection


async def _return_unused(pool: Any, starting: asyncio.Task[Any]) -> None:
    await asyncio.wait({starting})
    if starting.exception() is None:
        await _give_back(pool, starting.result())


async def _give_back(pool: Any, connection: Any) -> None:
    try:
        if connection.is_in_transaction():
            await connection.execute("rollback")
    except Exception:  # noqa: BLE001 - what cannot roll back is thrown away, whatever the cause
        with suppress(asyncpg.InterfaceError):  # gone already
            connection.terminate()
    await pool.release(connection)

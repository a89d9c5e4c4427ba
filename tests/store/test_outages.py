"""Connections that die, callers that leave, servers that go: nothing half-done, nothing leaked."""

import asyncio
import os
import signal
import time
from contextlib import AsyncExitStack, suppress

import anyio
import pytest
from sqlalchemy import text

from app.errors import InvariantBroken, Misconfigured, Unavailable
from app.store import changes
from app.store.failures import Contended
from app.store.session import Database, Limits, WriteTx
from tests.postgres import Postgres, start_postgres
from tests.store.objects import ADMIN, cluster_queue, with_spec

SLEEP = text("select pg_sleep(0.3)")


async def _backends(postgres: Postgres, database: Database) -> list[str]:
    name = database.url.rpartition("/")[2]
    rows = await postgres.admin(
        "select state from pg_stat_activity where datname = $1 and application_name = 'sluice-test'",
        name,
    )
    return [row["state"] for row in rows]


async def test_a_connection_killed_in_the_middle_leaves_nothing(
    postgres: Postgres, database: Database
) -> None:
    async def write_and_die() -> None:
        async with database.write(ADMIN) as tx:
            pid = await tx.value(text("select pg_backend_pid()"))
            await tx.rows(text("insert into cohort_roots values ('half')"))
            tx.put(cluster_queue("q", 1))
            await postgres.admin("select pg_terminate_backend($1)", pid)

    with pytest.raises(Unavailable):
        await write_and_die()
    async with database.read() as read:
        assert await read.list("ClusterQueue") == []
        assert await read.value(text("select count(*) from cohort_roots")) == 0
        assert await changes.head(read) == 1
    async with database.write(ADMIN) as tx:
        tx.put(cluster_queue("q", 1))
    assert len(tx.written) == 1


async def test_idle_connections_killed_in_the_pool_are_not_noticed(
    postgres: Postgres, database: Database
) -> None:
    pid = text("select pg_backend_pid()")
    async with database.read() as one, database.read() as two:
        pids = [await one.value(pid), await two.value(pid)]
    await postgres.admin("select pg_terminate_backend(pid, 5000) from unnest($1::int[]) pid", pids)
    for _ in range(3):
        async with database.read() as one, database.read() as two:
            assert not {await one.value(pid), await two.value(pid)} & set(pids)


@pytest.mark.parametrize("delay_s", [0.0, 0.001, 0.005, 0.02, 0.1])
async def test_cancelled_callers_leak_no_connection(
    postgres: Postgres, database: Database, delay_s: float
) -> None:
    async def work(number: int) -> None:
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue(f"q{number}", number))
            await tx.rows(SLEEP)

    tasks = [asyncio.create_task(work(number)) for number in range(8)]
    await asyncio.sleep(delay_s)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await _settled(postgres, database)
    async with asyncio.timeout(5):
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue("after", 99))


async def test_connections_that_died_unseen_are_replaced(database: Database) -> None:
    """The event loop has had no time to hear of it: the first statement finds out."""
    pid = text("select pg_backend_pid()")
    async with database.read() as one, database.read() as two:
        pids = [await one.value(pid), await two.value(pid)]
    for backend in pids:
        os.kill(backend, signal.SIGTERM)
    time.sleep(0.3)  # noqa: ASYNC251 - the point of it
    async with database.read() as one, database.read() as two:
        assert not {await one.value(pid), await two.value(pid)} & set(pids)


async def test_anyio_scopes_leak_no_connection(postgres: Postgres, database: Database) -> None:
    """As a web framework stops a handler: the scope cancels again at every await."""

    async def handler(number: int) -> None:
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue(f"q{number}", number))
            await tx.rows(SLEEP)

    for number in range(6):
        with anyio.move_on_after(0.02 * number):
            async with anyio.create_task_group() as group:
                group.start_soon(handler, number)
    await _settled(postgres, database)


async def test_a_cancelled_commit_happens_whole_or_not_at_all(
    postgres: Postgres, database: Database
) -> None:
    outcomes: set[int] = set()
    for number in range(30):

        async def work(number: int = number) -> None:
            async with database.write(ADMIN) as tx:
                tx.put(cluster_queue(f"a{number}", 2 * number))
                tx.put(cluster_queue(f"b{number}", 2 * number + 1))

        task = asyncio.create_task(work())
        await asyncio.sleep(0.0006 * number)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await _settled(postgres, database)
        async with database.read() as read:
            names = {item["metadata"]["name"] for item in await read.list("ClusterQueue")}
            fed = [
                c.name
                for c in await changes.since(read, 1)
                if c.name in (f"a{number}", f"b{number}")
            ]
        stored = len(names & {f"a{number}", f"b{number}"})
        assert stored == len(fed)
        outcomes.add(stored)
    assert outcomes == {0, 2}


async def test_a_commit_that_has_begun_goes_through_though_the_caller_leaves(
    database: Database,
) -> None:
    async with database.write(ADMIN) as tx:
        await tx.rows(text(_SLOW_COMMIT))
        await tx.rows(
            text(
                "create constraint trigger slow after insert on cluster_queues deferrable initially"
                " deferred for each row execute function slow()"
            )
        )

    async def work() -> None:
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue("q", 1))

    task = asyncio.create_task(work())
    await asyncio.sleep(0.3)  # in the trigger, which runs at commit
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.7)
    async with database.read() as read:
        assert len(await read.list("ClusterQueue")) == 1


_SLOW_COMMIT = """
create function slow() returns trigger language plpgsql as
$$ begin perform pg_sleep(0.6); return null; end $$
"""


async def test_two_statements_at_once_are_refused(database: Database) -> None:
    async with database.read() as tx:
        first = asyncio.create_task(tx.rows(SLEEP))
        await asyncio.sleep(0.05)
        with pytest.raises(InvariantBroken, match="Two statements at once"):
            await tx.rows(text("select 1"))
        await first


async def test_waiting_for_a_lock_has_an_end_and_run_tries_again(database_url: str) -> None:
    database = await Database.open(database_url, limits=Limits(lock_s=0.1))
    try:
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue("q", 1))
        (stored,) = tx.written
        tries = 0

        async def work(tx: WriteTx) -> None:
            nonlocal tries
            tries += 1
            await tx.get("ClusterQueue", None, "q", lock=True)
            tx.put(with_spec(stored, quota=tries))

        async with database.write(ADMIN) as holder:
            await holder.get("ClusterQueue", None, "q", lock=True)
            with pytest.raises(Contended):
                await database.run(ADMIN, work, attempts=2)
            assert tries == 2
            task = asyncio.create_task(database.run(ADMIN, work))
            await asyncio.sleep(0.3)
        _, committed = await task
        assert tries > 3
        assert committed.written[0]["spec"]["quota"] == tries
    finally:
        await database.close()


async def test_a_frozen_transaction_is_thrown_out(database_url: str) -> None:
    database = await Database.open(database_url, limits=Limits(idle_in_transaction_s=0.2))

    async def freeze_and_go_on() -> None:
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue("q", 1))
            await tx.list("Cohort")
            await asyncio.sleep(0.6)
            with pytest.raises(Unavailable):
                await tx.list("Cohort")

    try:
        with pytest.raises(Unavailable):
            await freeze_and_go_on()
        async with database.read() as read:
            assert await read.list("ClusterQueue") == []
    finally:
        await database.close()


async def test_a_swallowed_error_cannot_be_committed(database: Database) -> None:
    async def swallow() -> None:
        async with database.write(ADMIN) as tx:
            with suppress(InvariantBroken):
                await tx.rows(text("select 1 / 0"))

    with pytest.raises(InvariantBroken, match="had failed"):
        await swallow()


async def test_settings_of_every_session(database: Database) -> None:
    async with database.read() as tx:
        shown = {
            name: await tx.value(text(f"show {name}"))
            for name in ("timezone", "synchronous_commit", "statement_timeout", "lock_timeout")
        }
        assert await tx.value(text("show transaction_isolation")) == "repeatable read"
    assert shown == {
        "timezone": "UTC",
        "synchronous_commit": "on",
        "statement_timeout": "5s",
        "lock_timeout": "2s",
    }


async def test_an_unreachable_or_refusing_server_is_said_in_words(postgres: Postgres) -> None:
    with pytest.raises(Unavailable, match="Postgres does not answer"):
        await Database.open("postgresql://postgres@127.0.0.1:1/x")
    with pytest.raises(Misconfigured, match='database "absent" does not exist'):
        await Database.open(postgres.url("absent"))


async def test_schema_that_is_missing_is_said_in_words(empty_url: str) -> None:
    database = await Database.open(empty_url)
    try:
        with pytest.raises(Misconfigured, match="schema does not fit"):
            async with database.read() as tx:
                await tx.list("Cohort")
    finally:
        await database.close()


async def test_listening_and_writing_go_on_after_the_server_was_away() -> None:
    server = await start_postgres()
    database = await Database.open(server.admin_url)
    hints = database.listen(poll_s=0.2)
    try:
        assert await anext(hints) is None
        server.crash()
        assert not await database.ready()
        for _ in range(3):
            assert await anext(hints) is None
        await server.start()
        assert await database.ready()
        async with asyncio.timeout(15):
            while not await server.admin(
                "select 1 from pg_stat_activity where application_name = 'sluice-listen'"
            ):
                await anext(hints)
            await server.admin("select pg_notify('sluice_changes', '42')")
            while await anext(hints) != 42:
                pass
    finally:
        await hints.aclose()
        await database.close()
        server.stop()


async def _settled(postgres: Postgres, database: Database) -> None:
    """All backends are idle again before any limit could have ended them, and the whole pool can be used."""
    for _ in range(30):
        states = await _backends(postgres, database)
        if len(states) <= 5 and set(states) <= {"idle"}:
            break
        await asyncio.sleep(0.05)
    else:
        raise AssertionError(states)
    async with asyncio.timeout(3), AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(database.read())

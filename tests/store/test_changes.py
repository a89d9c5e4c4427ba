"""The feed: numbers in commit order, nothing skipped, pruning says so."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from app.errors import Gone
from app.store import changes
from app.store.session import Database
from tests.store.objects import ADMIN, cluster_queue, uid, with_status, workload

LATER = datetime.now(UTC) + timedelta(days=1)


async def _fill(database: Database, count: int) -> None:
    async with database.write(ADMIN) as tx:
        for number in range(count):
            tx.put(workload(f"w{number}", number))


async def test_the_slow_transaction_that_began_first_is_not_lost(database: Database) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> int:
        async with database.write(ADMIN) as tx:
            tx.put(cluster_queue("slow", 1))
            await tx.get(
                "ClusterQueue", None, "slow", lock=True
            )  # the transaction is open on the server
            begun.set()
            await go_on.wait()
        return tx.changes[0].number

    task = asyncio.create_task(slow())
    await begun.wait()
    async with database.write(ADMIN) as fast:
        fast.put(cluster_queue("fast", 2))
    async with database.read() as read:
        position = await changes.head(read)
    assert position == fast.changes[0].number
    go_on.set()
    number = await task
    assert number > position
    async with database.read() as read:
        assert [change.name for change in await changes.since(read, position)] == ["slow"]


async def test_a_reader_never_skips_under_concurrent_writers(database: Database) -> None:
    writers, each = 4, 25
    seen: list[int] = []
    done = asyncio.Event()

    async def write(writer: int) -> None:
        for turn in range(each):
            async with database.write(ADMIN) as tx:
                for part in range(turn % 3 + 1):
                    number = writer * 1000 + turn * 10 + part
                    tx.put(workload(f"w{number}", number))

    async def follow() -> None:
        position = 1
        while True:
            finished = done.is_set()
            async with database.read() as tx:
                found = await changes.since(tx, position, limit=7)
            seen.extend(change.number for change in found)
            position = found[-1].number if found else position
            if finished and not found:
                return

    reader = asyncio.create_task(follow())
    await asyncio.gather(*(write(writer) for writer in range(writers)))
    done.set()
    await reader
    async with database.read() as tx:
        everything = [change.number for change in await changes.since(tx, 1, limit=10_000)]
    assert seen == everything == sorted(set(everything))
    assert len(everything) == writers * sum(turn % 3 + 1 for turn in range(each))


async def test_numbers_of_one_commit_are_consecutive_and_in_order(database: Database) -> None:
    async with database.write(ADMIN) as tx:
        for number in (5, 3, 4):
            tx.put(workload(f"w{number}", number))
        tx.put(cluster_queue("q", 9))
    first = tx.changes[0].number
    assert [(change.number - first, change.uid) for change in tx.changes] == [
        (0, uid(5)),
        (1, uid(3)),
        (2, uid(4)),
        (3, uid(9)),
    ]


async def test_pruning_keeps_the_newest_and_moves_the_horizon(database: Database) -> None:
    await _fill(database, 10)
    async with database.read() as read:
        head = await changes.head(read)
    async with database.write(ADMIN) as tx:
        assert (
            await changes.prune(tx, keep=4, older_than=datetime.now(UTC) - timedelta(hours=1)) == 0
        )
        assert await changes.prune(tx, keep=4, older_than=LATER, chunk=5) == 5
        assert await changes.prune(tx, keep=4, older_than=LATER, chunk=5) == 1
        assert await changes.prune(tx, keep=4, older_than=LATER) == 0
    async with database.read() as read:
        assert await changes.horizon(read) == head - 4
        assert len(await changes.since(read, head - 4)) == 4
        assert await changes.since(read, head) == []
        known = [head - 3, head]
        found = await changes.since(read, head - 4, known=known)
        assert [one.number for one in found if not one.object] == known
        with pytest.raises(Gone, match="list again"):
            await changes.since(read, head - 5)


async def test_head_survives_pruning_everything(database: Database) -> None:
    async with database.read() as read:
        assert await changes.head(read) == 1
    await _fill(database, 3)
    async with database.write(ADMIN) as tx:
        head = await changes.head(tx)
        await changes.prune(tx, keep=0, older_than=LATER)
    async with database.write(ADMIN) as tx:
        assert await changes.head(tx) == head
        tx.put(cluster_queue("q", 50))
    assert tx.changes[0].number == head + 1


async def test_hints_name_the_newest_number_of_a_commit(database: Database) -> None:
    hints = database.listen(poll_s=30)
    try:
        assert await anext(hints) is None  # connected: read what was missed
        await _fill(database, 3)
        async with database.read() as read:
            assert await anext(hints) == await changes.head(read)
        async with database.write(ADMIN) as tx:
            tx.put(with_status(cluster_queue("q", 9), x=1))
        assert await anext(hints) == tx.changes[0].number
    finally:
        await hints.aclose()


async def test_a_failed_commit_sends_no_hint(database: Database) -> None:
    hints = database.listen(poll_s=0.2)
    try:
        assert await anext(hints) is None
        async with database.write(ADMIN, dry_run=True) as tx:
            tx.put(cluster_queue("q", 1))
        assert await anext(hints) is None
    finally:
        await hints.aclose()

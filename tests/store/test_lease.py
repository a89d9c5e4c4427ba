"""Leadership: one epoch at a time, and a stale leader cannot write."""

import asyncio

import pytest
from sqlalchemy import text

from app.errors import LeaseLost, Unavailable
from app.store import lease
from app.store.session import Database, Limits
from tests.store.objects import ENGINE, cluster_queue


async def _take(database: Database, holder: str, *, ttl_s: float = 30) -> lease.Lease:
    taken = await lease.take(database, holder, ttl_s=ttl_s)
    assert taken is not None
    return taken


async def _expire(database: Database) -> None:
    async with database.write(ENGINE) as tx:
        await tx.rows(text("update lease set expires_at = 'epoch'"))


async def test_one_leads_until_it_lets_go(database: Database) -> None:
    first = await _take(database, "a")
    assert first.epoch == 1
    assert await lease.take(database, "b", ttl_s=30) is None
    assert (
        await lease.take(database, "a", ttl_s=30) is None
    )  # a restarted process is another leader
    await lease.renew(database, first)
    async with database.read() as tx:
        seen = await lease.leader(tx)
    assert (seen.holder, seen.epoch) == ("a", 1)
    assert 20 < seen.expires_in_s <= 30
    await lease.release(database, first)
    assert (await _take(database, "b")).epoch == 2
    with pytest.raises(LeaseLost, match="epoch 1 is over"):
        await lease.renew(database, first)
    with pytest.raises(LeaseLost):
        await lease.release(database, first)


async def test_a_lease_that_ran_out_can_be_taken(database: Database) -> None:
    first = await _take(database, "a", ttl_s=0.1)
    await asyncio.sleep(0.15)
    await lease.renew(database, first)  # nobody took it: it goes on
    await _expire(database)
    second = await _take(database, "b")
    assert second.epoch == first.epoch + 1


async def test_epochs_begin_above_what_clusters_have_seen(database: Database) -> None:
    taken = await lease.take(database, "a", ttl_s=30, above_epoch=41)
    assert taken is not None
    assert taken.epoch == 42


async def test_only_one_of_many_takes_it(database: Database) -> None:
    taken = await asyncio.gather(*(lease.take(database, f"h{n}", ttl_s=30) for n in range(12)))
    assert len([one for one in taken if one is not None]) == 1


async def test_the_guard_stops_a_stale_leader(database: Database) -> None:
    old = await _take(database, "a")
    await _expire(database)
    await _take(database, "b")

    async def write_late() -> None:
        async with database.write(ENGINE) as tx:
            tx.put(cluster_queue("q", 1))
            await lease.guard(tx, old)

    with pytest.raises(LeaseLost):
        await write_late()
    async with database.read() as read:
        assert await read.list("ClusterQueue") == []


async def test_a_takeover_waits_for_a_guarded_transaction_and_a_renewal_does_not(
    database: Database,
) -> None:
    old = await _take(database, "a")
    async with database.write(ENGINE) as tx:
        await lease.guard(tx, old)
        async with asyncio.timeout(1):
            await lease.renew(database, old)
        await _expire(database)
        takeover = asyncio.create_task(_take(database, "b"))
        await asyncio.sleep(0.2)
        assert not takeover.done()
        tx.put(cluster_queue("q", 1))
    assert (await takeover).epoch == old.epoch + 1
    assert len(tx.written) == 1


async def test_a_leader_frozen_inside_a_transaction_is_thrown_out(
    database: Database, database_url: str
) -> None:
    frozen = await Database.open(database_url, limits=Limits(idle_in_transaction_s=0.3))
    try:
        old = await _take(frozen, "a")

        async def freeze_and_write() -> None:
            async with frozen.write(ENGINE) as tx:
                await lease.guard(tx, old)
                await _expire(database)
                taken = await _take(database, "b")  # waits until the frozen one is cut off
                assert taken.epoch == old.epoch + 1
                tx.put(cluster_queue("q", 1))

        with pytest.raises(Unavailable):
            await freeze_and_write()
        async with database.read() as read:
            assert await read.list("ClusterQueue") == []
    finally:
        await frozen.close()

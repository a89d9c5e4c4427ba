"""API tokens: shown once, checked by hash, revocable."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from app.errors import AlreadyExists, NotFound
from app.store import identity, tokens
from app.store.session import Database
from tests.store.objects import ADMIN

NOW = datetime(2026, 3, 1, tzinfo=UTC)


async def test_a_token_opens_until_it_is_revoked(database: Database) -> None:
    async with database.write(ADMIN) as tx:
        token, shown = await tokens.create(tx, name="ci", role="viewer", now=NOW)
        other, other_shown = await tokens.create(tx, name="ops", role="admin", now=NOW)
    async with database.read() as read:
        assert await tokens.verify(read, shown, now=NOW) == token
        assert await tokens.verify(read, other_shown, now=NOW) == other
        assert await tokens.all_tokens(read) == [token, other]
        rows = [str(dict(row)) for row in await read.rows(text("select * from tokens"))]
    assert not any(shown.rpartition("_")[2] in row for row in rows)
    async with database.write(ADMIN) as tx:
        await tokens.used(tx, token.id, now=NOW + timedelta(hours=1))
        await tokens.revoke(tx, "ops")
    async with database.read() as read:
        assert await tokens.verify(read, other_shown, now=NOW) is None
        (left,) = await tokens.all_tokens(read)
    assert (left.name, left.last_used_at) == ("ci", NOW + timedelta(hours=1))
    with pytest.raises(NotFound):
        async with database.write(ADMIN) as tx:
            await tokens.revoke(tx, "ops")


async def test_wrong_ones_open_nothing(database: Database) -> None:
    async with database.write(ADMIN) as tx:
        token, shown = await tokens.create(tx, name="ci", role="admin", now=NOW)
        _, second = await tokens.create(tx, name="two", role="admin", now=NOW)
    swapped = f"sluice_{token.id}_{second.split('_', 2)[2]}"
    wrong = [
        "",
        "sluice",
        "sluice__",
        shown[:-1],
        shown + "x",
        "x" + shown,
        swapped,
        "sluice_\ud800_é",
        "'; --",
    ]
    async with database.read() as read:
        for text_shown in wrong:
            if not text_shown.isprintable():
                continue
            assert await tokens.verify(read, text_shown, now=NOW) is None, text_shown


async def test_tokens_expire(database: Database) -> None:
    async with database.write(ADMIN) as tx:
        _, shown = await tokens.create(
            tx, name="ci", role="admin", now=NOW, expires_at=NOW + timedelta(days=1)
        )
    async with database.read() as read:
        assert await tokens.verify(read, shown, now=NOW + timedelta(hours=23)) is not None
        assert await tokens.verify(read, shown, now=NOW + timedelta(days=1)) is None


async def test_names_are_unique(database: Database) -> None:
    async with database.write(ADMIN) as tx:
        await tokens.create(tx, name="ci", role="admin", now=NOW)
    with pytest.raises(AlreadyExists):
        async with database.write(ADMIN) as tx:
            await tokens.create(tx, name="ci", role="viewer", now=NOW)


async def test_the_database_has_an_identity(database: Database) -> None:
    async with database.read() as read:
        found = await identity.identity(read)
    assert len(found.database_id) == 36
    assert found.system_id.isdigit()
    assert found.timeline == 1

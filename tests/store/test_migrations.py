"""The schema: up, down and up again; equal to the tables; refused when unknown."""

import asyncio

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from app.errors import Misconfigured
from app.store import (
    journal_tables,  # noqa: F401 - registers its tables
    migrate,
)
from app.store.connect import Limits, migration_engine
from app.store.tables import Base


async def test_up_down_up(empty_url: str) -> None:
    assert (await migrate.inspect(empty_url)).state == "empty"
    assert (await migrate.upgrade(empty_url)).state == "current"
    assert (await migrate.downgrade(empty_url, "base")).state == "empty"
    left = await _fetch(
        empty_url,
        "select relname from pg_class join pg_namespace n on n.oid = relnamespace"
        " where nspname = 'public' union select proname from pg_proc where pronamespace = 'public'::regnamespace",
    )
    assert {row[0] for row in left} <= {"alembic_version", "alembic_version_pkc"}
    assert (await migrate.upgrade(empty_url)).state == "current"


async def test_tables_equal_the_migrated_schema(database_url: str) -> None:
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        return list(compare_metadata(context, Base.metadata))

    engine = migration_engine(database_url, Limits())
    try:
        async with engine.connect() as connection:
            assert await connection.run_sync(differences) == []
    finally:
        await engine.dispose()


async def test_partial_indexes_and_checks_are_those_of_the_tables(database_url: str) -> None:
    rows = await _fetch(
        database_url,
        "select indexname, indexdef from pg_indexes where schemaname = 'public' and indexdef like '% WHERE %'",
    )
    in_database = {row["indexname"] for row in rows}
    in_tables = {
        str(index.name)
        for table in Base.metadata.tables.values()
        for index in table.indexes
        if index.dialect_options["postgresql"]["where"] is not None
    }
    assert in_database == in_tables
    checks = await _fetch(
        database_url,
        "select conname from pg_constraint where contype = 'c' and connamespace = 'public'::regnamespace",
    )
    named = {
        str(constraint.name)
        for table in Base.metadata.tables.values()
        for constraint in table.constraints
        if type(constraint).__name__ == "CheckConstraint"
    }
    assert {row[0] for row in checks} == named


async def test_concurrent_upgrades_do_the_work_once(empty_url: str) -> None:
    results = await asyncio.gather(*(migrate.upgrade(empty_url) for _ in range(4)))
    assert [schema.state for schema in results] == ["current"] * 4
    assert len(await _fetch(empty_url, "select * from alembic_version")) == 1


async def test_newer_schema_is_refused_and_untouched(database_url: str) -> None:
    await _fetch(database_url, "update alembic_version set version_num = '9999'")
    with pytest.raises(Misconfigured, match=r"9999 was made by a newer version"):
        await migrate.check(database_url)
    with pytest.raises(Misconfigured, match=r"9999 was made by a newer version"):
        await migrate.upgrade(database_url)
    assert await migrate.inspect(database_url) == migrate.Schema("unknown", "9999", "0001")


async def test_missing_schema_is_complained_about_or_waited_for(empty_url: str) -> None:
    with pytest.raises(Misconfigured, match="run `sluice migrate`"):
        await migrate.check(empty_url)
    waiting = asyncio.create_task(migrate.check(empty_url, wait_s=30))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await migrate.upgrade(empty_url)
    assert (await waiting).state == "current"


async def _fetch(url: str, statement: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        rows: list[asyncpg.Record] = await connection.fetch(statement)
        return rows
    finally:
        await connection.close()

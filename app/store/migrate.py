"""Is the schema the one this version was written for, and how does it become so?

Alembic's environment lies in `migrations/` at the root of the project and is called from here only; there is no
``alembic.ini``. One process migrates at a time (advisory lock, on the connection that migrates), each migration in one
transaction with a short lock timeout: a migration that must wait for a busy table fails and is tried again, it never
queues everybody behind itself. A process refuses a schema it does not know; one that is merely older it can wait for,
because another replica may be migrating.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import Misconfigured
from app.store.connect import Limits, migration_engine
from app.store.failures import translated

_LIMITS = Limits(statement_s=60, lock_s=4, idle_in_transaction_s=60)
_MIGRATION_LOCK = 0x51CE_0003
_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Schema:
    """`current` is None in a database without our tables."""

    state: Literal["current", "empty", "older", "unknown"]
    current: str | None
    head: str


async def upgrade(url: str, to: str = "head") -> Schema:
    """Bring the schema up; a second caller waits and finds nothing to do."""
    async with _migrating(url) as connection:
        before = await connection.run_sync(_schema)
        _refuse_unknown(before)
        with _known(to):
            await connection.run_sync(lambda sync: command.upgrade(_config(sync), to))
        return await connection.run_sync(_schema)


async def downgrade(url: str, to: str) -> Schema:
    """Undo migrations down to revision `to` ("base": all, with all data)."""
    async with _migrating(url) as connection:
        with _known(to):
            await connection.run_sync(lambda sync: command.downgrade(_config(sync), to))
        return await connection.run_sync(_schema)


async def inspect(url: str) -> Schema:
    """What schema the database has, beside the newest this version knows."""
    async with _connection(url) as connection:
        return await connection.run_sync(_schema)


async def check(url: str, *, wait_s: float = 0) -> Schema:
    """Return when the schema is current; raise `Misconfigured` with what to do about it otherwise.

    An older or missing schema is waited for, up to `wait_s`; an unknown one never gets better by itself.
    """
    deadline = asyncio.get_running_loop().time() + wait_s
    while True:
        schema = await inspect(url)
        _refuse_unknown(schema)
        if schema.state == "current":
            return schema
        if asyncio.get_running_loop().time() >= deadline:
            raise Misconfigured(
                f"The database schema is {schema.current or 'empty'}, this version needs {schema.head}: "
                "run `sluice migrate`."
            )
        await asyncio.sleep(_POLL_S)


@contextmanager
def _known(revision: str) -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        raise Misconfigured(f"Cannot migrate to revision {revision}: {error}.") from error


def _refuse_unknown(schema: Schema) -> None:
    if schema.state == "unknown":
        raise Misconfigured(
            f"The database schema {schema.current} was made by a newer version of Sluice, which this one "
            f"({schema.head}) must not touch: run the newer version, or downgrade the schema with it."
        )


@asynccontextmanager
async def _migrating(url: str) -> AsyncIterator[AsyncConnection]:
    """A connection that holds the migration lock, which the server frees even if this process dies."""
    async with _connection(url) as connection:
        with translated():
            await connection.execute(text("set lock_timeout = '60s'"))
            await connection.execute(
                text("select pg_advisory_lock(:key)"), {"key": _MIGRATION_LOCK}
            )
            await connection.execute(text("set lock_timeout = '4s'"))
            await connection.commit()
            yield connection
            await connection.commit()


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[AsyncConnection]:
    engine = migration_engine(url, _LIMITS)
    try:
        with translated():
            async with engine.connect() as connection:
                yield connection
    finally:
        await engine.dispose()


def _schema(connection: Connection) -> Schema:
    scripts = ScriptDirectory.from_config(_config())
    head = scripts.get_current_head()
    if head is None:
        raise Misconfigured(f"There are no migrations in {_directory()}.")
    current = MigrationContext.configure(connection).get_current_revision()
    connection.rollback()
    if current is None:
        return Schema("empty", None, head)
    known = {script.revision for script in scripts.walk_revisions()}
    if current not in known:
        return Schema("unknown", current, head)
    return Schema("current" if current == head else "older", current, head)


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_directory()))
    config.attributes["connection"] = connection
    return config


def _directory() -> Path:
    """Beside the package: both in the repository and in the container image."""
    return Path(__file__).resolve().parents[2] / "migrations"

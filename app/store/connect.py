"""How is a connection to Postgres made, and what may it never do?

The URL is libpq's, as in ``DATABASE_URL``: the driver reads it, including ``sslmode`` and the ``PG*`` variables. Every
session gets UTC, full durability and limits on waiting and working; several hosts may be named, the one that accepts
writes is used. Nothing ever changes a session's settings or leaves anything in it, so that connections need no cleaning
between uses. A connection that the server closed while it idled is replaced when a transaction begins.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from app.errors import Invalid, Misconfigured

CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long the server lets one of our sessions work on a statement, wait for a lock, sit in a transaction."""

    statement_s: float = 5.0
    lock_s: float = 2.0
    idle_in_transaction_s: float = 2.0

    def settings(self) -> dict[str, str]:
        return {
            "statement_timeout": _milliseconds(self.statement_s),
            "lock_timeout": _milliseconds(self.lock_s),
            "idle_in_transaction_session_timeout": _milliseconds(self.idle_in_transaction_s),
        }


#: A dead peer is noticed within about 12 s, also in the middle of a statement.
_SESSION = {
    "timezone": "UTC",
    "synchronous_commit": "on",
    "client_connection_check_interval": "2s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "jit": "off",  # our statements are short; compiling one costs more than it saves
}


async def connect(url: str, *, application_name: str, limits: Limits | None = None) -> Any:
    """One connection, outside any pool."""
    with _readable_url():
        return await asyncpg.connect(**_options(url, application_name, limits or Limits()))


async def open_pool(url: str, *, application_name: str, size: int, limits: Limits) -> Any:
    """A pool with its first connection made; it never holds more than `size`."""
    with _readable_url():
        return await asyncpg.create_pool(
            **_options(url, application_name, limits),
            min_size=1,
            max_size=size,
            init=_teach_codecs,
            reset=_leave_as_it_is,
        )


def migration_engine(url: str, limits: Limits) -> AsyncEngine:
    """For Alembic, which knows only SQLAlchemy's connections; nothing else runs through it."""

    async def creator() -> Any:
        return await connect(url, application_name="sluice-migrate", limits=limits)

    return create_async_engine("postgresql+asyncpg://", async_creator=creator, poolclass=NullPool)


def _options(url: str, application_name: str, limits: Limits) -> dict[str, Any]:
    scheme, separator, rest = url.partition("://")
    # SQLAlchemy's spelling of the scheme is accepted too: people copy it from other projects.
    dsn = f"{scheme.partition('+')[0]}{separator}{rest}"
    return {
        "dsn": dsn,
        "timeout": CONNECT_TIMEOUT_S,
        "target_session_attrs": "read-write",
        "server_settings": _SESSION | limits.settings() | {"application_name": application_name},
    }


@contextmanager
def _readable_url() -> Iterator[None]:
    """Say what is wrong with a URL; of what the driver could not even split, nothing, since it may hold a password."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        why = f" ({error})" if isinstance(error, asyncpg.InterfaceError) else ""
        raise Misconfigured(
            "the database URL is not of the form postgresql://user:password@host:5432/database"
            + why
        ) from None


async def _teach_codecs(connection: Any) -> None:
    """Read and write jsonb through orjson, uuids as the strings that manifests have."""
    for kind, encode, decode in (
        ("jsonb", _encode_json, _decode_json),
        ("uuid", _encode_uuid, _decode_uuid),
    ):
        await connection.set_type_codec(
            kind, schema="pg_catalog", encoder=encode, decoder=decode, format="binary"
        )


async def _leave_as_it_is(_connection: Any) -> None:
    """Instead of the driver's cleaning round trip."""


def _encode_json(value: Any) -> bytes:
    try:
        return b"\x01" + orjson.dumps(value)
    except TypeError as error:  # integers beyond 64 bits, lone surrogates
        raise Invalid(f"This value cannot be stored as JSON: {error}.") from error


def _decode_json(data: bytes) -> Any:
    return orjson.loads(data[1:])


def _encode_uuid(text: str) -> bytes:
    try:
        return UUID(text).bytes
    except (ValueError, AttributeError) as error:
        raise Invalid(f"This uid is no UUID: {text!r}.") from error


def _decode_uuid(data: bytes) -> str:
    text = data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))

"""How is a connection to Postgres made, and what may it never do?

The URL is libpq's, as in ``DATABASE_URL``: the driver reads it, including ``sslmode`` and the ``PG*`` variables. Every
session gets UTC, full durability and limits on waiting and working; several hosts may be named, the one that accepts
writes is used. A server that turns read-only or goes down makes all connections of that age unusable at once.
"""

from dataclasses import dataclass
from typing import Any

import asyncpg
import orjson
from sqlalchemy import event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.errors import Invalid
from app.store.failures import LOST, sqlstate

_CONNECT_TIMEOUT_S = 5.0
_POOL_TIMEOUT_S = 5.0
_RECYCLE_S = 1800


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


def make_engine(url: str, *, application_name: str, pool_size: int, limits: Limits) -> AsyncEngine:
    """An engine without connections yet; it never holds more than `pool_size` of them."""
    settings = _SESSION | limits.settings() | {"application_name": application_name}

    async def connect() -> Any:
        return await connect_raw(url, settings)

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=_POOL_TIMEOUT_S,
        pool_pre_ping=True,
        pool_recycle=_RECYCLE_S,
        json_serializer=_encode,
        json_deserializer=orjson.loads,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "handle_error", _forget_lost_servers)
    return engine


async def connect_raw(url: str, settings: dict[str, str]) -> Any:
    """One connection of the driver itself, outside any pool."""
    return await asyncpg.connect(
        dsn=driver_url(url),
        timeout=_CONNECT_TIMEOUT_S,
        server_settings=settings,
        target_session_attrs="read-write",
    )


def driver_url(url: str) -> str:
    """SQLAlchemy's spelling of the scheme is accepted too: people copy it from other projects."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme.partition('+')[0]}{separator}{rest}"


def _encode(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:  # integers beyond 64 bits, lone surrogates
        raise Invalid(f"This value cannot be stored as JSON: {error}.") from error


def _forget_lost_servers(context: ExceptionContext) -> None:
    if sqlstate(context.original_exception) in LOST:
        context.is_disconnect = True


def _milliseconds(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))

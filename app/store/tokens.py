"""Which API tokens exist, and does this one open the door?

A token is ``sluice_<id>_<secret>``. The secret has 256 random bits, so its SHA-256 is kept and neither salt nor slow
hash would add anything; it is shown once, when created. Comparing takes the same time whether it is wrong or right, and
an unknown id costs the same comparison. Caching verdicts is the API's business, as is recording when a token was used.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import bindparam, delete, select, update

from app.errors import NotFound
from app.store.journal_tables import Token as TokenRow
from app.store.lane import Runs
from app.store.statements import insert_into
from app.store.tables import table_of

_tokens = table_of(TokenRow)
_PREFIX = "sluice"
_NO_HASH = bytes(32)

_CREATE = insert_into(
    _tokens, "id", "hash", "role", "name", "created_at", "expires_at", "last_used_at"
)
_BY_ID = select(_tokens).where(_tokens.c.id == bindparam("id"))

Role = Literal["admin", "viewer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What may be shown of a token."""

    id: str
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


async def create(
    tx: Runs, *, name: str, role: Role, now: datetime, expires_at: datetime | None = None
) -> tuple[Token, str]:
    """A new token and its text; names are unique (`AlreadyExists`)."""
    identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = Token(
        id=identity, name=name, role=role, created_at=now, expires_at=expires_at, last_used_at=None
    )
    columns = {key: getattr(token, key) for key in Token.__dataclass_fields__}
    await tx.rows(_CREATE, {**columns, "hash": _digest(secret)})
    return token, f"{_PREFIX}_{identity}_{secret}"


async def verify(tx: Runs, presented: str, *, now: datetime) -> Token | None:
    """The token behind a text, if it is one and has not expired."""
    prefix, _, rest = presented.partition("_")
    identity, _, secret = rest.partition("_")
    found = await tx.rows(_BY_ID, {"id": identity})
    row = found[0] if found else None
    expected = _NO_HASH if row is None else row["hash"]
    matches = hmac.compare_digest(expected, _digest(secret)) and prefix == _PREFIX
    if row is None or not matches:
        return None
    token = _read(row)
    return None if token.expires_at is not None and token.expires_at <= now else token


async def used(tx: Runs, token_id: str, *, now: datetime) -> None:
    """Note that a token was used; call it now and then, not for each request."""
    await tx.rows(update(_tokens).where(_tokens.c.id == token_id).values(last_used_at=now))


async def all_tokens(tx: Runs) -> Sequence[Token]:
    """By name; expired ones too."""
    rows = await tx.rows(select(_tokens).order_by(_tokens.c.name))
    return [_read(row) for row in rows]


async def revoke(tx: Runs, name: str) -> None:
    gone = delete(_tokens).where(_tokens.c.name == name).returning(_tokens.c.id)
    if not await tx.rows(gone):
        raise NotFound(f'token "{name}" not found')


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _read(row: Any) -> Token:
    return Token(**{key: row[key] for key in Token.__dataclass_fields__})

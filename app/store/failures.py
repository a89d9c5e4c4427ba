"""What does an error of Postgres or its driver mean to the rest of the house?

Foreign exceptions are translated here and nowhere else. What another try can cure is `Unavailable`; two of its
subclasses matter to callers: `Contended` (lost against another transaction, nothing was written: run it again, as
`Database.run` does) and `CommitUnknown` (the answer to COMMIT was lost, so it may have happened: read before acting).
What only our own bug can cause is `InvariantBroken`.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from sqlalchemy.exc import SQLAlchemyError, StatementError

from app.errors import (
    AlreadyExists,
    AppError,
    Invalid,
    InvariantBroken,
    Misconfigured,
    Unavailable,
)


class Contended(Unavailable):
    """Another transaction was in the way; nothing of this one was written."""


class CommitUnknown(Unavailable):
    """The connection broke while committing: the transaction happened whole or not at all, and only a read can tell."""


#: Serialization failure, deadlock, lock timeout.
_CONTENDED = frozenset({"40001", "40P01", "55P03"})
_DUPLICATE = "23505"
_CLASS_OF_UNAVAILABLE = frozenset({"08", "53", "57", "58"})
_OTHERS_UNAVAILABLE = frozenset({"25006", "25P03", "25P04", "XX000"})
#: Faults that a person can mend, and the sentence that says where.
_MENDABLE: dict[str, tuple[type[AppError], str]] = (
    dict.fromkeys(
        ("28000", "28P01", "3D000"), (Misconfigured, "Postgres refuses the connection: {}.")
    )
    | dict.fromkeys(
        ("42P01", "42703", "42883", "3F000"),
        (Misconfigured, "The database schema does not fit this version: {}."),
    )
    | dict.fromkeys(
        ("22000", "22021", "22P05", "22P02", "22003", "54000"),
        (Invalid, "This value cannot be stored in Postgres: {}."),
    )
)

#: The server is going down or has become a read-only standby: all connections of that age are useless.
_SERVER_LOST = frozenset({"25006", "57P01", "57P02", "57P03", "57P05"})

#: All that the driver raises. An internal error is what it makes of the server's farewell to an idle connection.
DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)

#: How the driver says, without a code, that a connection is no longer there.
_GONE = ("closed", "released back to the pool")

_DUPLICATE_KEY = re.compile(r"Key \((?P<columns>.*)\)=\((?P<values>.*)\) already exists")


@contextmanager
def translated(*, committing: bool = False) -> Iterator[None]:
    """Raise what the block raises in our own words."""
    try:
        yield
    except (SQLAlchemyError, *DRIVER_ERRORS) as error:
        raise translate(error, committing=committing) from error


def translate(error: Exception, *, committing: bool = False) -> AppError | InvariantBroken:
    origin = _origin(error)
    if isinstance(origin, AppError):  # our own JSON encoder, called inside the driver
        return origin
    state = sqlstate(error)
    if state is None:
        return _without_state(error, committing=committing)
    if state in _MENDABLE:
        kind, sentence = _MENDABLE[state]
        return kind(sentence.format(_words(error)))
    if state[:2] in _CLASS_OF_UNAVAILABLE or state in _OTHERS_UNAVAILABLE:
        return _lost(error, committing=committing)
    return _refused(error, state)


def _refused(error: Exception, state: str) -> AppError | InvariantBroken:
    if state in _CONTENDED or isinstance(error, asyncpg.InvalidCachedStatementError):
        return Contended("Other transactions are changing the same objects; try again.")
    if state == _DUPLICATE:
        return _duplicate(error)
    return InvariantBroken(f"Postgres refuses what the store asked for ({state}): {_words(error)}.")


def sqlstate(error: BaseException | None) -> str | None:
    """The five characters Postgres gave, wherever the driver put them."""
    state = getattr(_origin(error), "sqlstate", None)
    return state if isinstance(state, str) else None


def is_server_lost(error: BaseException) -> bool:
    """New connections are needed, maybe to another server."""
    return sqlstate(error) in _SERVER_LOST


def _without_state(error: Exception, *, committing: bool) -> AppError | InvariantBroken:
    """Errors of the driver or the socket; anything else is a fault in our own statement."""
    origin = _origin(error)
    if isinstance(origin, TimeoutError) and not committing:
        return Unavailable("No connection to Postgres became free in time.")
    if isinstance(origin, (OSError, asyncpg.InternalClientError)) or any(
        word in str(origin) for word in _GONE
    ):
        return _lost(error, committing=committing)
    return InvariantBroken(f"The store asked for something impossible: {_words(error)}.")


def _origin(error: BaseException | None) -> BaseException | None:
    """What SQLAlchemy (for migrations) or the driver (around our codecs) wrapped, if they did."""
    if isinstance(error, StatementError):
        return error.orig
    if isinstance(error, asyncpg.DataError) and isinstance(error.__cause__, AppError):
        return error.__cause__
    return error


def _lost(error: Exception, *, committing: bool) -> Unavailable:
    if committing:
        return CommitUnknown("The connection to Postgres broke while committing.")
    return Unavailable(f"Postgres does not answer: {_words(error)}.")


def _duplicate(error: Exception) -> AlreadyExists:
    origin = _origin(error)
    detail = str(getattr(origin, "detail", "") or "")
    found = _DUPLICATE_KEY.search(detail)
    if found is None:
        return AlreadyExists("An object of this name already exists.")
    if found["columns"] == "job_uid":
        return AlreadyExists(f"The job {found['values']} already has a live workload.")
    named = found["values"].removeprefix(", ").replace(", ", "/")
    return AlreadyExists(f'"{named}" already exists.')


def _words(error: Exception) -> str:
    """Postgres' own sentence, without the statement and its parameters: those may hold other people's data."""
    origin = _origin(error)
    words = str(origin).strip() or type(origin).__name__
    return re.sub(r"^<class '[^']*'>: ", "", words).splitlines()[0].rstrip(".")

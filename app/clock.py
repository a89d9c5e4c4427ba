"""The one place where the wall clock is read. Everything below the shell takes `now` as a parameter."""

from datetime import UTC, datetime


def now() -> datetime:
    """The current time, aware, in UTC, to the microsecond (what Postgres keeps)."""
    return datetime.now(UTC)

"""Who leads, and how is one who no longer does kept from writing?

Theory of operation. One row says who leads, in which epoch, until when; only Postgres' clock counts. Taking it raises
the epoch, which is part of the primary key. Each transaction of the leader locks its own row `FOR KEY SHARE` first
(`guard`): a renewal changes no key and passes, a takeover changes the key and waits until the guarded transaction has
ended, and whoever guards an epoch that is gone finds no row. (A plain read would let a stale leader commit; `FOR SHARE`
would make renewals wait. Both were measured.) A leader that froze inside a transaction is thrown out by the session's
idle limit, so a takeover waits for seconds at most.

Whether the lease has expired is not asked by the guard: until somebody takes it, its holder is still the only one.
Demoting itself in time, by a monotonic clock, is the engine's part. Use a `Database` of its own for renewals, so that a
busy pool cannot delay them.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Interval, bindparam, func, literal, select, text, update

from app.errors import LeaseLost
from app.store.audit import Actor
from app.store.journal_tables import Lease as LeaseRow
from app.store.lane import Runs
from app.store.session import Database
from app.store.tables import table_of

_lease = table_of(LeaseRow)
_ID = "leader"
_ACTOR = Actor("system", "leader")

_GUARD = (
    select(literal(1))
    .select_from(_lease)
    .where(
        _lease.c.id == _ID,
        _lease.c.epoch == bindparam("epoch"),
        _lease.c.holder == bindparam("holder"),
    )
    .with_for_update(key_share=True, read=True)
)
_LEADER = select(
    _lease.c.holder,
    _lease.c.epoch,
    func.extract("epoch", _lease.c.expires_at - func.clock_timestamp()).label("expires_in_s"),
).where(_lease.c.id == _ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Proof of having led in `epoch`; whether that still holds only `guard` and `renew` can say."""

    holder: str
    epoch: int
    ttl_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The row as it is; `expires_in_s` is negative when nobody leads."""

    holder: str
    epoch: int
    expires_in_s: float


async def take(
    database: Database, holder: str, *, ttl_s: float, above_epoch: int = 0
) -> Lease | None:
    """Become the leader if nobody is; None otherwise.

    `above_epoch` is the highest epoch seen outside the database (in a cluster's annotations): a restored, older
    database must not hand out epochs that were used.
    """
    statement = (
        update(_lease)
        .where(_lease.c.id == _ID, _lease.c.expires_at < func.clock_timestamp())
        .values(
            holder=holder,
            epoch=func.greatest(_lease.c.epoch, above_epoch) + 1,
            expires_at=_from_now(ttl_s),
            backend=_backend(),
        )
        .returning(_lease.c.epoch)
    )
    async with database.write(_ACTOR) as tx:
        epoch = await tx.value(statement)
    return None if epoch is None else Lease(holder=holder, epoch=epoch, ttl_s=ttl_s)


async def renew(database: Database, lease: Lease) -> None:
    """Extend the lease by its time to live from now; raises `LeaseLost` when another epoch has begun.

    Note the time *before* calling: that is when the new term starts at the latest.
    """
    await _set_expiry(database, lease, lease.ttl_s)


async def release(database: Database, lease: Lease) -> None:
    """Let another lead at once; raises `LeaseLost` when one does already."""
    await _set_expiry(database, lease, 0)


async def guard(tx: Runs, lease: Lease) -> None:
    """First statement of every transaction that only the leader may commit; raises `LeaseLost`."""
    if not await tx.rows(_GUARD, {"epoch": lease.epoch, "holder": lease.holder}):
        raise _lost(lease)


async def leader(tx: Runs) -> Leader:
    """Who leads, for those who only look."""
    (row,) = await tx.rows(_LEADER)
    return Leader(holder=row["holder"], epoch=row["epoch"], expires_in_s=float(row["expires_in_s"]))


async def _set_expiry(database: Database, lease: Lease, ttl_s: float) -> None:
    statement = (
        update(_lease)
        .where(_lease.c.id == _ID, _lease.c.epoch == lease.epoch, _lease.c.holder == lease.holder)
        .values(expires_at=_from_now(ttl_s), backend=_backend())
    )
    async with database.write(_ACTOR) as tx:
        if not await tx.rows(statement.returning(_lease.c.epoch)):
            raise _lost(lease)


def _from_now(seconds: float) -> object:
    return func.clock_timestamp() + literal(timedelta(seconds=seconds), Interval)


def _backend() -> object:
    """Which session wrote last, for whoever has to find it."""
    return text("pg_backend_pid()::text")


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"{lease.holder} no longer leads: epoch {lease.epoch} is over.")

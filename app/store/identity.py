"""Is this the database that the clusters were told of?

A restored copy, a failed-over standby that lost its last commits, or an empty database in place of the old one would
make Sluice forget admissions that are running. The id is made once, by the first migration, and travels with dumps; the
system identifier is the server's, and its timeline grows at each failover. Whoever starts compares them with what it
remembers elsewhere.
"""

from dataclasses import dataclass

from sqlalchemy import text

from app.store.lane import Runs

_IDENTITY = text(
    """
    select value ->> 'id' as database_id,
           system_identifier::text as system_id,
           timeline_id as timeline
    from meta, pg_control_system(), pg_control_checkpoint()
    where key = 'database'
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    database_id: str
    system_id: str
    timeline: int


async def identity(tx: Runs) -> Identity:
    (row,) = await tx.rows(_IDENTITY)
    return Identity(**row)

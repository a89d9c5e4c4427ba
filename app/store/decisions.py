"""What did the cycles conclude for a workload, and when did that change?

A conclusion is written when it differs from the last one of its workload (other attempt, cluster queue, outcome, reason
or message), so a workload that waits for a week for one reason has one row. `facts` are the explanation's structured
part, as they were when the conclusion was first reached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Integer, bindparam, select, text
from sqlalchemy.types import TypeEngine

from app.store.journal_tables import Decision
from app.store.lane import Runs
from app.store.tables import Json, Name, Uid, table_of

decisions = table_of(Decision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    workload_uid: str
    attempt: int
    cluster_queue: str
    outcome: str
    reason: str
    message: str
    facts: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A conclusion and when it was first reached, by Postgres' clock."""

    id: int
    at: datetime
    conclusion: Conclusion


_COLUMNS: dict[str, TypeEngine[Any]] = {
    "workload_uid": Uid,
    "attempt": Integer(),
    "cluster_queue": Name,
    "outcome": Name,
    "reason": Name,
    "message": Name,
    "facts": Json,
}

# The last row is looked up through the index on (workload_uid, id), once for each new conclusion.
_RECORD = text(
    """
    insert into decisions (workload_uid, attempt, cluster_queue, outcome, reason, message, facts)
    select new.workload_uid, new.attempt, new.cluster_queue, new.outcome, new.reason, new.message, new.facts
    from unnest(
        cast(:workload_uid as uuid[]), cast(:attempt as integer[]), cast(:cluster_queue as text[]),
        cast(:outcome as text[]), cast(:reason as text[]), cast(:message as text[]), cast(:facts as jsonb[])
    ) with ordinality as new (workload_uid, attempt, cluster_queue, outcome, reason, message, facts, place)
    left join lateral (
        select true as found, d.attempt, d.cluster_queue, d.outcome, d.reason, d.message
        from decisions d where d.workload_uid = new.workload_uid order by d.id desc limit 1
    ) last on true
    where last.found is null
       or (last.attempt, last.cluster_queue, last.outcome, last.reason, last.message)
          is distinct from (new.attempt, new.cluster_queue, new.outcome, new.reason, new.message)
    order by new.place
    returning 1
    """
).bindparams(*(bindparam(name, type_=ARRAY(kind)) for name, kind in _COLUMNS.items()))


_HISTORY = (
    select(decisions)
    .where(decisions.c.workload_uid == bindparam("uid", type_=Uid))
    .order_by(decisions.c.id.desc())
    .limit(bindparam("limit", type_=BigInteger))
)


async def record(tx: Runs, conclusions: Sequence[Conclusion]) -> int:
    """Append those that are news; returns how many were."""
    if not conclusions:
        return 0
    columns = {name: [getattr(one, name) for one in conclusions] for name in _COLUMNS}
    return len(await tx.rows(_RECORD, columns))


async def history(tx: Runs, workload_uid: str, *, limit: int = 50) -> Sequence[Past]:
    """The conclusions for a workload, the newest first."""
    rows = await tx.rows(_HISTORY, {"uid": workload_uid, "limit": limit})
    return [
        Past(
            id=row["id"],
            at=row["at"],
            conclusion=Conclusion(**{name: row[name] for name in _COLUMNS}),
        )
        for row in rows
    ]

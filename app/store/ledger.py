"""Who held how much of what, from when to when?

One row for each flavor's resource of each attempt, opened in the transaction that admits and closed in the one that
takes the charge away, whoever writes it. Pods that are done give their part back early: the row ends there and a
smaller one follows. So usage over time, accelerator hours and charge-back are sums over these rows.
Both times are Postgres' own, because the spans of many processes are added up: one clock cannot disagree with itself.
All rows of one commit begin together.
Amounts are the core's integers (thousandths for cpu, bytes, pieces).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ARRAY, BigInteger, any_, bindparam, func, select, text, update

from app.store.journal_tables import Admission
from app.store.lane import Runs
from app.store.statements import insert_into
from app.store.tables import Name, Uid, table_of
from app.store.tracking import StoredWorkload

admissions = table_of(Admission)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What an admission takes; `borrowed` is the part above the cluster queue's nominal quota."""

    cluster_queue: str
    flavor: str
    resource: str
    amount: int
    borrowed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One row of the ledger; `ended_at` is None while the quota is held."""

    workload_uid: str
    namespace: str
    name: str
    attempt: int
    charge: Charge
    started_at: datetime
    ended_at: datetime | None


_OPEN = insert_into(
    admissions,
    *("workload_uid", "attempt", "cluster_queue", "flavor", "resource"),
    *("namespace", "name", "amount", "borrowed"),
)
_CLOSE = (
    update(admissions)
    .where(
        admissions.c.workload_uid == any_(bindparam("uids", type_=ARRAY(Uid))),
        admissions.c.ended_at.is_(None),
    )
    .values(ended_at=func.clock_timestamp())
)


_SHRINK = text(
    """
    with less as (
        select * from unnest(
            cast(:uid as uuid[]), cast(:flavor as text[]), cast(:resource as text[]), cast(:amount as bigint[])
        ) as less (workload_uid, flavor, resource, amount)
    ), ended as (
        update admissions a set ended_at = clock_timestamp() from less
        where (a.workload_uid, a.flavor, a.resource) = (less.workload_uid, less.flavor, less.resource)
          and a.ended_at is null and less.amount < a.amount
        returning a.*, less.amount as kept
    )
    insert into admissions (workload_uid, attempt, part, cluster_queue, flavor, resource, namespace, name,
                            amount, borrowed, started_at)
    select workload_uid, attempt, part + 1, cluster_queue, flavor, resource, namespace, name,
           kept, greatest(0, borrowed - (amount - kept)), ended_at
    from ended
    """
).bindparams(
    bindparam("uid", type_=ARRAY(Uid)),
    bindparam("flavor", type_=ARRAY(Name)),
    bindparam("resource", type_=ARRAY(Name)),
    bindparam("amount", type_=ARRAY(BigInteger)),
)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a workload still holds of one flavor's resource after giving a part back."""

    workload_uid: str
    flavor: str
    resource: str
    amount: int


async def shrink_spans(tx: Runs, kept: Sequence[Kept]) -> None:
    """End the rows that hold more than is kept, and begin smaller ones; what was borrowed goes back first."""
    if not kept:
        return
    await tx.rows(
        _SHRINK,
        {
            "uid": [one.workload_uid for one in kept],
            "flavor": [one.flavor for one in kept],
            "resource": [one.resource for one in kept],
            "amount": [one.amount for one in kept],
        },
    )


async def open_spans(tx: Runs, charges: Sequence[tuple[StoredWorkload, Charge]]) -> None:
    """Begin to charge; the workloads are as they will be stored, with the attempt that takes the quota."""
    await tx.each(
        _OPEN,
        [
            {
                "workload_uid": workload.manifest["metadata"]["uid"],
                "namespace": workload.manifest["metadata"]["namespace"],
                "name": workload.manifest["metadata"]["name"],
                "attempt": workload.tracking.attempt,
                "cluster_queue": charge.cluster_queue,
                "flavor": charge.flavor,
                "resource": charge.resource,
                "amount": charge.amount,
                "borrowed": charge.borrowed,
            }
            for workload, charge in charges
        ],
    )


async def close_spans(tx: Runs, uids: Sequence[str]) -> None:
    """End what these workloads hold."""
    if not uids:
        return
    await tx.rows(_CLOSE, {"uids": list(uids)})


async def spans(
    tx: Runs,
    *,
    cluster_queue: str | None = None,
    workload_uid: str | None = None,
    limit: int = 1000,
) -> Sequence[Span]:
    """The newest first, of a cluster queue or of a workload."""
    query = select(admissions).order_by(
        admissions.c.started_at.desc(),
        admissions.c.workload_uid,
        admissions.c.attempt.desc(),
        admissions.c.flavor,
        admissions.c.resource,
    )
    if cluster_queue is not None:
        query = query.where(admissions.c.cluster_queue == cluster_queue)
    if workload_uid is not None:
        query = query.where(admissions.c.workload_uid == workload_uid)
    rows = await tx.rows(query.limit(limit))
    return [
        Span(
            charge=Charge(
                **{
                    key: row[key]
                    for key in ("cluster_queue", "flavor", "resource", "amount", "borrowed")
                }
            ),
            **{
                key: row[key]
                for key in (
                    "workload_uid",
                    "namespace",
                    "name",
                    "attempt",
                    "started_at",
                    "ended_at",
                )
            },
        )
        for row in rows
    ]

"""What happened since number N? The feed that keeps the engine's image and every watch up to date.

Numbers are given in commit order: a transaction takes them as its last step, under a lock that it holds until its
commit is visible. So a reader that has seen number N has seen everything below it, for ever; no slow transaction can
appear behind its back, as it could with a bare sequence. Numbers may have gaps (a transaction that failed while
committing), never repetitions. Pruning moves the horizon: whoever asks for what lies below is `Gone` and lists again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    ARRAY,
    BigInteger,
    any_,
    bindparam,
    case,
    delete,
    func,
    literal,
    select,
    update,
)

from app.core.manifests import Manifest
from app.errors import Gone
from app.store.journal_tables import Change as ChangeRow
from app.store.journal_tables import Meta
from app.store.lane import Runs
from app.store.tables import Json, table_of
from app.store.unit import ChangeType

changes = table_of(ChangeRow)
meta = table_of(Meta)

CHANNEL = "sluice_changes"
_HORIZON = "changes_horizon"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One committed write. `object` is the manifest under resourceVersion `number`; a deleted one as it last was."""

    number: int
    type: ChangeType
    kind: str
    namespace: str
    name: str
    uid: str
    object: Manifest


_SINCE = (
    select(
        *(changes.c[name] for name in ("number", "type", "kind", "namespace", "name", "uid")),
        case(
            (changes.c.number == any_(bindparam("known", type_=ARRAY(BigInteger))), None),
            else_=changes.c.object,
        ).label("object"),
    )
    .where(changes.c.number > bindparam("number"))
    .order_by(changes.c.number)
    .limit(bindparam("limit"))
)


_NEWEST = select(func.max(changes.c.number))
_HORIZON_NOW = select(meta.c.value["number"].as_integer()).where(meta.c.key == _HORIZON)
_MOVE_HORIZON = (
    update(meta).where(meta.c.key == _HORIZON).values(value=bindparam("value", type_=Json))
)


async def since(
    tx: Runs, number: int, limit: int = 500, *, known: Iterable[int] = ()
) -> Sequence[Change]:
    """The changes after `number`, oldest first; raises `Gone` if some of them are no longer kept.

    The changes whose numbers the caller has `known` already come with an empty object: it need not travel again.
    """
    rows = await tx.rows(_SINCE, {"number": number, "limit": limit, "known": list(known)})
    is_whole = bool(rows) and rows[0]["number"] == number + 1
    if not is_whole and number < await horizon(tx):
        raise Gone(f"The changes after {number} are no longer kept; list again.")
    return [Change(**{**row, "object": row["object"] or {}}) for row in rows]


async def head(tx: Runs) -> int:
    """The newest committed number: the resourceVersion of a list taken in this transaction."""
    newest = await tx.value(_NEWEST)
    return await horizon(tx) if newest is None else int(newest)


async def horizon(tx: Runs) -> int:
    """The highest number that may be missing from the feed."""
    return int(await tx.value(_HORIZON_NOW))


async def prune(tx: Runs, *, keep: int, older_than: datetime, chunk: int = 5000) -> int:
    """Forget the oldest changes, but never the newest `keep` nor one as young as `older_than`.

    At most `chunk` a call, so that no lock is held long; returns how many went: call again while it is `chunk`.
    """
    bound = await head(tx) - keep
    oldest = (
        select(changes.c.number, changes.c.at)
        .where(changes.c.number <= bound)
        .order_by(changes.c.number)
        .limit(chunk)
        .subquery()
    )
    cut = select(func.max(oldest.c.number)).where(oldest.c.at < older_than)
    last = await tx.value(cut)
    if last is None:
        return 0
    removed = await tx.rows(delete(changes).where(changes.c.number <= last).returning(literal(1)))
    await tx.rows(_MOVE_HORIZON, {"value": {"number": last}})
    return len(removed)

"""How are stored objects read, whatever their kind?

Objects come ordered by namespace and name, bytewise. Long lists are read in pages by key, so that a list of 50,000
never holds the event loop or the server for long; inside a read transaction all pages see one moment, inside a write
transaction each page sees what is committed by then.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from functools import cache

from sqlalchemy import ARRAY, Select, any_, bindparam, select, tuple_

from app.store.kinds import stored_kind
from app.store.lane import Runs
from app.store.rows import read_row
from app.store.tables import Uid
from app.store.tracking import Stored

PAGE = 500


async def fetch(
    tx: Runs, kind: str, namespace: str | None, name: str, *, lock: bool
) -> Stored | None:
    """One object; with `lock` nobody else changes it until the transaction ends."""
    rows = await tx.rows(_by_name(kind, lock=lock), {"namespace": namespace or "", "name": name})
    return read_row(stored_kind(kind), rows[0]) if rows else None


async def fetch_locked(tx: Runs, kind: str, uids: Iterable[str]) -> list[Stored]:
    """Objects by uid, locked in uid order: whoever locks several takes them in the same order."""
    rows = await tx.rows(_by_uid_locked(kind), {"uids": sorted(uids)})
    return [read_row(stored_kind(kind), row) for row in rows]


async def pages(
    tx: Runs, kind: str, namespace: str | None = None
) -> AsyncIterator[Sequence[Stored]]:
    """All objects of a kind, at most `PAGE` at a time."""
    stored = stored_kind(kind)
    after = {"after_namespace": namespace or "", "after_name": ""}
    query = _page(kind, one_namespace=namespace is not None)
    while True:
        rows = await tx.rows(query, after)
        if rows:
            yield [read_row(stored, row) for row in rows]
        if len(rows) < PAGE:
            return
        after = {"after_namespace": rows[-1]["namespace"], "after_name": rows[-1]["name"]}


@cache
def _by_name(kind: str, *, lock: bool) -> Select[tuple[object, ...]]:
    table = stored_kind(kind).table
    query = select(table).where(
        table.c.namespace == bindparam("namespace"), table.c.name == bindparam("name")
    )
    return query.with_for_update() if lock else query


@cache
def _by_uid_locked(kind: str) -> Select[tuple[object, ...]]:
    table = stored_kind(kind).table
    wanted = table.c.uid == any_(bindparam("uids", type_=ARRAY(Uid)))
    return select(table).where(wanted).order_by(table.c.uid).with_for_update()


@cache
def _page(kind: str, *, one_namespace: bool) -> Select[tuple[object, ...]]:
    """What follows a place in the order; an empty name comes before every other."""
    columns = stored_kind(kind).table.c
    place = tuple_(bindparam("after_namespace"), bindparam("after_name"))
    query = select(stored_kind(kind).table).where(tuple_(columns.namespace, columns.name) > place)
    if one_namespace:
        query = query.where(columns.namespace == bindparam("after_namespace"))
    return query.order_by(columns.namespace, columns.name).limit(PAGE)

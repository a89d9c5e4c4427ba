"""How are stored objects read, whatever their kind?

Objects come ordered by namespace and name, bytewise. Long lists are read in pages by key, so that a list of 50,000
never holds the event loop or the server for long; inside a read transaction all pages see one moment, inside a write
transaction each page sees what is committed by then.
"""

from collections.abc import AsyncIterator, Iterable, Sequence

from sqlalchemy import Select, literal, select, tuple_

from app.store.kinds import StoredKind, stored_kind
from app.store.lane import Runs
from app.store.rows import read_row
from app.store.tables import is_any
from app.store.tracking import Stored

PAGE = 500


async def fetch(
    tx: Runs, kind: str, namespace: str | None, name: str, *, lock: bool
) -> Stored | None:
    """One object; with `lock` nobody else changes it until the transaction ends."""
    stored = stored_kind(kind)
    table = stored.table
    query = select(table).where(table.c.namespace == (namespace or ""), table.c.name == name)
    found = (await tx.execute(query.with_for_update() if lock else query)).mappings().first()
    return None if found is None else read_row(stored, dict(found))


async def fetch_locked(tx: Runs, kind: str, uids: Iterable[str]) -> list[Stored]:
    """Objects by uid, locked in uid order: whoever locks several takes them in the same order."""
    stored = stored_kind(kind)
    column = stored.table.c.uid
    query = (
        select(stored.table).where(is_any(column, sorted(uids))).order_by(column).with_for_update()
    )
    return [read_row(stored, dict(row)) for row in (await tx.execute(query)).mappings()]


async def pages(
    tx: Runs, kind: str, namespace: str | None = None
) -> AsyncIterator[Sequence[Stored]]:
    """All objects of a kind, at most `PAGE` at a time."""
    stored = stored_kind(kind)
    query = _ordered(stored, namespace)
    while True:
        rows = (await tx.execute(query)).mappings().all()
        if rows:
            yield [read_row(stored, dict(row)) for row in rows]
        if len(rows) < PAGE:
            return
        query = _after(stored, namespace, rows[-1]["namespace"], rows[-1]["name"])


def _ordered(stored: StoredKind, namespace: str | None) -> Select[tuple[object, ...]]:
    table = stored.table
    query = select(table).order_by(table.c.namespace, table.c.name).limit(PAGE)
    return query if namespace is None else query.where(table.c.namespace == namespace)


def _after(
    stored: StoredKind, namespace: str | None, last_namespace: str, last_name: str
) -> Select[tuple[object, ...]]:
    table = stored.table
    return _ordered(stored, namespace).where(
        tuple_(table.c.namespace, table.c.name)
        > tuple_(literal(last_namespace), literal(last_name))
    )

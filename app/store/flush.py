"""How does what a transaction collected become rows? The last step before the only commit.

In this order, which is also the order of locks: rows that are to change and are not held yet (by uid), the cohort roots
that the edits touch (by name), then change numbers. From the numbers to the commit only writes happen, a handful of
statements whatever the number of objects, because every other writer waits for that stretch. `take_change_numbers` also
sends the one NOTIFY of the commit.

A dry run does the same work, checks and unique keys included, without numbers, feed and audit; the caller rolls back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Any

from sqlalchemy import Insert, Integer, Table, Update, bindparam, delete, func, select, update

from app.core.metadata import status_of
from app.core.requests import held
from app.core.workloads import read_workload
from app.errors import InvariantBroken, NotFound
from app.store import ledger, objects, roots
from app.store.audit import Actor, audit, row_of, verb_of
from app.store.changes import Change, changes
from app.store.kinds import KINDS, StoredKind, stored_kind
from app.store.lane import Runs
from app.store.rows import object_columns, tracking_columns, with_version
from app.store.statements import insert_into
from app.store.tables import Uid, is_any
from app.store.tracking import Stored, StoredWorkload
from app.store.unit import Edit, Put, Remove, Unit, edit_of

_FEED = ("number", "type", "kind", "namespace", "name", "uid", "object")
_TELL = insert_into(changes, *_FEED)
_AUDIT = insert_into(audit, *(column.name for column in audit.c if column.name not in ("id", "at")))
_TAKE_NUMBERS = select(func.take_change_numbers(bindparam("count", type_=Integer)))


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a commit writes: every object asked for, as stored, and the changes the feed gets."""

    written: tuple[Stored, ...] = ()
    changes: tuple[Change, ...] = ()
    #: The cohort roots that moved, with their new versions.
    roots: Mapping[str, int] = field(default_factory=dict)


async def flush(tx: Runs, unit: Unit, actor: Actor, *, dry_run: bool) -> Flushed:
    edits = await _edits(tx, unit)
    touched = unit.bumps.union(await roots.touched_by(tx, edits))
    await roots.lock(tx, touched)
    changing = [edit for edit in edits if edit.type is not None]
    if dry_run:
        await _write_rows(tx, edits, {})
        return Flushed(tuple(_last(edit) for edit in edits))
    first = await _take_numbers(tx, max(len(changing), int(bool(touched))))
    numbers = {id(edit): first + place for place, edit in enumerate(changing)}
    stored = [_stored(edit, numbers.get(id(edit))) for edit in edits]
    await _write_rows(tx, edits, numbers)
    entries = [_change(edit, numbers[id(edit)]) for edit in changing]
    await _write_journal(tx, actor, list(zip(changing, entries, strict=True)))
    await ledger.close_spans(tx, [edit.metadata["uid"] for edit in edits if _frees(edit)])
    await ledger.shrink_spans(
        tx, [kept for edit in edits if _shrinks(edit) for kept in _kept(edit)]
    )
    last = first + max(len(changing), 1) - 1
    if touched:
        await roots.mark(tx, touched, last)
    return Flushed(tuple(stored), tuple(entries), dict.fromkeys(sorted(touched), last))


async def _edits(tx: Runs, unit: Unit) -> list[Edit]:
    """Lock what is not held yet and compare each step with its row."""
    unread = unit.unread()
    for kind in KINDS:
        if kind in unread:
            for found in await objects.fetch_locked(tx, kind, unread[kind]):
                unit.hold(found)
    return [
        edit_of(step, unit.held.get((step.kind, step.uid)))
        if isinstance(step, Put)
        else await _removal(tx, step)
        for step in unit.steps.values()
    ]


async def _removal(tx: Runs, step: Remove) -> Edit:
    kind = stored_kind(step.kind)
    found = await objects.fetch(tx, step.kind, step.namespace, step.name, lock=True)
    if found is None:
        raise NotFound(f'{kind.resource} "{step.name}" not found')
    return Edit(kind=kind, before=found, after=None)


async def _take_numbers(tx: Runs, count: int) -> int:
    """The first of `count` consecutive numbers; from here on no other transaction can take or show any."""
    if count == 0:
        return 0
    return int(await tx.value(_TAKE_NUMBERS, {"count": count}))


async def _write_rows(tx: Runs, edits: Sequence[Edit], numbers: dict[int, int]) -> None:
    """Kind by kind in the order of `KINDS`; removals first, so that a name can be given to a new object."""
    for kind in KINDS.values():
        mine = [edit for edit in edits if edit.kind is kind]
        if not mine:
            continue
        removed = [edit.metadata["uid"] for edit in mine if edit.after is None]
        if removed:
            await tx.rows(delete(kind.table).where(is_any(kind.table.c.uid, removed)))
        await _insert(tx, kind, [edit for edit in mine if edit.before is None], numbers)
        await _update(tx, kind, [edit for edit in mine if edit.before and edit.after], numbers)


async def _insert(
    tx: Runs, kind: StoredKind, fresh: Sequence[Edit], numbers: dict[int, int]
) -> None:
    rows = [
        {**_columns(kind, edit.after), "resource_version": numbers.get(id(edit), 0)}
        for edit in fresh
        if edit.after is not None
    ]
    if rows:
        await tx.each(_insert_of(kind.table, tuple(rows[0])), rows)


async def _update(
    tx: Runs, kind: StoredKind, edits: Iterable[Edit], numbers: dict[int, int]
) -> None:
    """Write only the columns that differ: a status refresh does not rewrite a pod template."""
    rows = [row for edit in edits if (row := _difference(kind, edit, numbers.get(id(edit))))]
    for columns, alike in groupby(sorted(rows, key=_shape), key=_shape):
        await tx.each(_update_of(kind.table, columns), list(alike))


def _difference(kind: StoredKind, edit: Edit, number: int | None) -> dict[str, Any]:
    if edit.before is None or edit.after is None:
        raise InvariantBroken("Only an object that was and will be can differ from itself.")
    row: dict[str, Any] = {}
    if edit.type is not None:
        before, after = (
            object_columns(kind, edit.before.manifest),
            object_columns(kind, edit.after.manifest),
        )
        row = {name: value for name, value in after.items() if before[name] != value}
        row["resource_version"] = number or edit.before.version
    if edit.tracked and edit.tracking_before and edit.tracking_after:
        old, new = tracking_columns(edit.tracking_before), tracking_columns(edit.tracking_after)
        row |= {name: value for name, value in new.items() if old[name] != value}
    if row.keys() & {"uid", "namespace", "name"}:
        raise InvariantBroken(f"An object of kind {kind.kind} would change its identity.")
    return {**row, "of_uid": edit.metadata["uid"]} if row else {}


def _shape(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(row.keys() - {"of_uid"}))


@lru_cache(maxsize=512)
def _update_of(table: Table, columns: tuple[str, ...]) -> Update:
    values = {name: bindparam(name, type_=table.c[name].type) for name in columns}
    return update(table).where(table.c.uid == bindparam("of_uid", type_=Uid)).values(values)


@lru_cache(maxsize=32)
def _insert_of(table: Table, columns: tuple[str, ...]) -> Insert:
    return insert_into(table, *columns)


def _columns(kind: StoredKind, stored: Stored) -> dict[str, Any]:
    row = object_columns(kind, stored.manifest)
    return row | tracking_columns(stored.tracking) if stored.tracking is not None else row


def _last(edit: Edit) -> Stored:
    last = edit.after or edit.before
    if last is None:
        raise InvariantBroken("An edit without an object.")
    return last


def _stored(edit: Edit, number: int | None) -> Stored:
    last = _last(edit)
    if number is None:
        return last
    manifest = with_version(last.manifest, number)
    return Stored(manifest) if last.tracking is None else StoredWorkload(manifest, last.tracking)


def _change(edit: Edit, number: int) -> Change:
    if edit.type is None:
        raise InvariantBroken("An unchanged object has no place in the feed.")
    return Change(
        number=number,
        type=edit.type,
        kind=edit.kind.kind,
        namespace=edit.metadata.get("namespace", ""),
        name=edit.metadata["name"],
        uid=edit.metadata["uid"],
        object=with_version(edit.manifest, number),
    )


async def _write_journal(tx: Runs, actor: Actor, changed: Sequence[tuple[Edit, Change]]) -> None:
    feed = [{name: getattr(change, name) for name in _FEED} for _, change in changed]
    await tx.each(_TELL, feed)
    audited = [
        row_of(actor, verb, edit, change.number)
        for edit, change in changed
        if (verb := verb_of(actor, edit))
    ]
    await tx.each(_AUDIT, audited)


def _frees(edit: Edit) -> bool:
    before, after = edit.tracking_before, edit.tracking_after
    return before is not None and before.charged and (after is None or not after.charged)


def _shrinks(edit: Edit) -> bool:
    """Some of its pods are done for good, and their quota is given back while the others run on."""
    before, after = edit.before, edit.after
    if before is None or after is None or edit.tracking_after is None:
        return False
    done = "reclaimablePods"
    changed = status_of(before.manifest).get(done) != status_of(after.manifest).get(done)
    return changed and edit.tracking_after.charged and not _frees(edit)


def _kept(edit: Edit) -> list[ledger.Kept]:
    workload = read_workload(edit.manifest)
    return [
        ledger.Kept(workload.uid, fr.flavor, fr.resource, amount)
        for fr, amount in sorted(held(workload).items())
    ]

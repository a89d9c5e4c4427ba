"""Who changed what, and is it worth a row for ever?

Everything a user changes is; of what Sluice changes by itself: definitions of quota (when more than their status
changes) and the steps of a workload that give or take quota: admit, evict, deactivate. Status refreshes are not: they
are in the change feed while anybody can still care. A row holds the object before and after, without managed fields;
for Sluice's own steps of a workload only the status, the one part they touch. Rows are written in the transaction they
describe, and a trigger keeps them as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import select

from app.core.manifests import Manifest
from app.store.journal_tables import Audit
from app.store.lane import Runs
from app.store.tables import table_of
from app.store.tracking import Stored
from app.store.unit import Edit

audit = table_of(Audit)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who writes: an authenticated user, or a part of Sluice by its name."""

    kind: Literal["user", "system"]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    id: int
    at: datetime
    actor: Actor
    verb: str
    kind: str
    namespace: str
    name: str
    uid: str
    number: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None


_UNTOLD = ("managedFields", "resourceVersion")  # the row's `number` is the version

_VERBS = {"ADDED": "create", "MODIFIED": "update", "DELETED": "delete"}
_VERB_OF_STATE = {"admitted": "admit", "evicting": "evict", "inactive": "deactivate"}


def verb_of(actor: Actor, edit: Edit) -> str | None:
    """What the audit calls this edit; None when it keeps no row of it."""
    if edit.type is None:
        return None
    if actor.kind == "user":
        return _VERBS[edit.type]
    if edit.kind.kind == "Workload" and edit.type == "MODIFIED":
        return _step_of(edit)
    if edit.type == "MODIFIED" and not _defines_otherwise(edit):
        return None
    return _VERBS[edit.type] if edit.kind.shapes_quota else None


def row_of(actor: Actor, verb: str, edit: Edit, number: int) -> dict[str, Any]:
    shown = _status if verb in _VERB_OF_STATE.values() else _whole
    return {
        "actor_kind": actor.kind,
        "actor": actor.name,
        "verb": verb,
        "kind": edit.kind.kind,
        "namespace": edit.metadata.get("namespace", ""),
        "name": edit.metadata["name"],
        "uid": edit.metadata["uid"],
        "number": number,
        "before": shown(edit.before),
        "after": shown(edit.after),
    }


async def entries(
    tx: Runs,
    *,
    kind: str | None = None,
    namespace: str | None = None,
    name: str | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Sequence[Entry]:
    """The newest first; page on with the last id as `before_id`."""
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    wanted = {"kind": kind, "namespace": namespace, "name": name}
    for column, value in wanted.items():
        if value is not None:
            query = query.where(audit.c[column] == value)
    if before_id is not None:
        query = query.where(audit.c.id < before_id)
    rows = await tx.rows(query)
    return [
        Entry(
            actor=Actor(row["actor_kind"], row["actor"]),
            **{key: row[key] for key in set(row.keys()) - {"actor_kind", "actor"}},
        )
        for row in rows
    ]


def _step_of(edit: Edit) -> str | None:
    before, after = edit.tracking_before, edit.tracking_after
    if before is None or after is None or before.state == after.state:
        return None
    return _VERB_OF_STATE.get(after.state)


def _defines_otherwise(edit: Edit) -> bool:
    if edit.before is None or edit.after is None:
        return True
    return edit.before.manifest.get("spec") != edit.after.manifest.get("spec")


def _whole(stored: Stored | None) -> Manifest | None:
    if stored is None:
        return None
    metadata = {k: v for k, v in stored.manifest["metadata"].items() if k not in _UNTOLD}
    return {**stored.manifest, "metadata": metadata}


def _status(stored: Stored | None) -> Manifest | None:
    return None if stored is None else {"status": stored.manifest.get("status")}

"""Which cohort trees does a change touch, and how is a tree kept still while something is decided on it?

A tree of quota is named by its root: the topmost cohort, or the cluster queue itself where it has no cohort. Each root
has a row, and its `version` is the number of the last change that altered what the tree may admit: an edit of a queue,
cohort or flavor in it, or an admission. A decision made with knowledge of all changes up to N is good if the version is
at most N, and stays good until commit if the row is locked meanwhile. Releases do not move it: more room never makes an
admission wrong.

Everybody locks in one order: rows they edit, edits lock, roots by name, workloads by uid, change numbers. Edits of
quota take the edits lock, because the root of a queue is found by walking cohorts, which another edit could be moving;
the walk sees the stored cohorts and, for the place after the edit, what this transaction will store. Status refreshes
touch nothing. A cycle of cohorts has no root; each of its members counts as one.
"""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import ARRAY, any_, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert

from app.core.manifests import Manifest
from app.store.journal_tables import CohortRoot
from app.store.kinds import stored_kind
from app.store.lane import Runs
from app.store.tables import Name, is_any, table_of
from app.store.tracking import Stored
from app.store.unit import Edit

#: Cohort name -> parent name, for cohorts that have an object.
Parents = Mapping[str, str | None]

roots = table_of(CohortRoot)

#: Serializes edits of quota.
_EDITS_LOCK = select(func.pg_advisory_xact_lock(0x51CE_0002))

_NAMED = roots.c.name == any_(bindparam("names", type_=ARRAY(Name)))
_LOCK = select(roots).where(_NAMED).order_by(roots.c.name).with_for_update()
_NEW = insert(roots).values(name=bindparam("name"), version=0).on_conflict_do_nothing()
_MARK = update(roots).where(_NAMED).values(version=bindparam("number"))
_ALL = select(roots.c.name)
_PARENTS = select(stored_kind("Cohort").table.c.name, stored_kind("Cohort").table.c.parent)


async def touched_by(tx: Runs, edits: Sequence[Edit]) -> tuple[str, ...]:
    """The roots whose admissions these edits may change; holds back other edits until the transaction ends."""
    shaping = [edit for edit in edits if _reshapes(edit)]
    if not shaping:
        return ()
    await hold_edits(tx)
    if any(edit.kind.kind not in _PLACED for edit in shaping):
        return await _all_roots(tx, shaping)
    return tuple(sorted(await _roots_of(tx, shaping)))


async def hold_edits(tx: Runs) -> None:
    """Hold back everybody else's edits of quota until this transaction ends."""
    await tx.rows(_EDITS_LOCK)


async def lock(tx: Runs, names: Iterable[str]) -> dict[str, int]:
    """Lock roots in name order and return their versions; a root never seen before starts at 0."""
    ordered = sorted(set(names))
    if not ordered:
        return {}
    found = await _locked(tx, ordered)
    if len(found) < len(ordered):
        await tx.each(_NEW, [{"name": name} for name in ordered if name not in found])
        found = await _locked(tx, ordered)
    return found


async def mark(tx: Runs, names: Iterable[str], number: int) -> None:
    """Move the versions of locked roots to the change that alters them."""
    await tx.rows(_MARK, {"names": sorted(names), "number": number})


async def _locked(tx: Runs, names: Sequence[str]) -> dict[str, int]:
    return {row["name"]: row["version"] for row in await tx.rows(_LOCK, {"names": names})}


def root_of(cohort: str, parents: Parents) -> tuple[str, ...]:
    """The root above a cohort; on a cycle, all of its members."""
    path = [cohort]
    while True:
        above = parents.get(path[-1])
        if above is None:
            return (path[-1],)
        if above in path:
            return tuple(sorted(path[path.index(above) :]))
        path.append(above)


def _reshapes(edit: Edit) -> bool:
    """Status and labels decide nothing; spec, existence and being deleted do."""
    if not edit.kind.shapes_quota or edit.type is None:
        return False
    if edit.before is None or edit.after is None:
        return True
    return _shape(edit.before.manifest) != _shape(edit.after.manifest)


def _shape(manifest: Manifest) -> tuple[object, object]:
    return manifest.get("spec"), manifest["metadata"].get("deletionTimestamp")


async def _all_roots(tx: Runs, shaping: Sequence[Edit]) -> tuple[str, ...]:
    """A flavor, check or topology may be used anywhere."""
    names = {row["name"] for row in await tx.rows(_ALL)}
    return tuple(sorted(names | await _roots_of(tx, shaping)))


async def _roots_of(tx: Runs, shaping: Sequence[Edit]) -> set[str]:
    now = await _parents(tx)
    later = _overlaid(now, shaping)
    queues = await _cohorts_of_queues(tx, shaping)
    names: set[str] = set()
    for edit in shaping:
        place = _PLACED.get(edit.kind.kind)
        if place is None:
            continue
        for stored, parents in ((edit.before, now), (edit.after, later)):
            names.update(place(stored, edit, parents, queues))
    return names


async def _parents(tx: Runs) -> dict[str, str | None]:
    return {row["name"]: row["parent"] for row in await tx.rows(_PARENTS)}


def _overlaid(parents: Parents, edits: Iterable[Edit]) -> Parents:
    later = dict(parents)
    for edit in edits:
        if edit.kind.kind == "Cohort":
            later.pop(edit.metadata["name"], None)
            if edit.after is not None:
                later[edit.metadata["name"]] = _spec(edit.after).get("parentName") or None
    return later


async def _cohorts_of_queues(tx: Runs, edits: Iterable[Edit]) -> Mapping[str, str | None]:
    """Cohorts of the stored cluster queues that edited local queues point to."""
    wanted = sorted(
        {
            str(_spec(stored).get("clusterQueue"))
            for edit in edits
            if edit.kind.kind == "LocalQueue"
            for stored in (edit.before, edit.after)
            if stored is not None
        }
    )
    if not wanted:
        return {}
    queues = stored_kind("ClusterQueue").table
    query = select(queues.c.name, queues.c.cohort).where(is_any(queues.c.name, wanted))
    return {row["name"]: row["cohort"] for row in await tx.rows(query)}


def _spec(stored: Stored) -> Manifest:
    spec: Manifest = stored.manifest.get("spec") or {}
    return spec


def _place_of_cohort(
    _stored: Stored | None, edit: Edit, parents: Parents, _queues: Mapping[str, str | None]
) -> tuple[str, ...]:
    """Also without an object a cohort has a place: queues may name it."""
    return root_of(edit.metadata["name"], parents)


def _place_of_queue(
    stored: Stored | None, edit: Edit, parents: Parents, _queues: Mapping[str, str | None]
) -> tuple[str, ...]:
    if stored is None:
        return ()
    cohort = _spec(stored).get("cohortName")
    return root_of(cohort, parents) if cohort else (edit.metadata["name"],)


def _place_of_local_queue(
    stored: Stored | None, _edit: Edit, parents: Parents, queues: Mapping[str, str | None]
) -> tuple[str, ...]:
    name = None if stored is None else _spec(stored).get("clusterQueue")
    if name is None or name not in queues:
        return ()
    cohort = queues[name]
    return root_of(cohort, parents) if cohort else (name,)


_PLACED = {
    "Cohort": _place_of_cohort,
    "ClusterQueue": _place_of_queue,
    "LocalQueue": _place_of_local_queue,
}

"""One verb for every write of an object through the API: read, change, check against others, store.

`change` is what the API makes of the request (a patch, say); it runs inside the transaction, on the locked row, so two
writers cannot both think they were alone. Rules about one object alone are judged there; rules that need other objects
are judged here, under locks that keep their answer true until the commit.
"""

from collections.abc import Callable

from app.core.manifests import Manifest
from app.core.metadata import spec_of
from app.core.policy import Policy
from app.errors import FieldError, Invalid
from app.intake.kinds.cohort import cohort_cycle
from app.intake.workloads import decide, must_act, tracked
from app.store.audit import Actor
from app.store.roots import hold_edits
from app.store.session import Database, WriteTx
from app.store.tracking import Stored, Tracking

Change = Callable[[Manifest | None], Manifest | None]


async def change_object(
    database: Database,
    place: tuple[str, str | None, str],
    change: Change,
    *,
    actor: Actor,
    policy: Policy,
    dry_run: bool,
) -> Manifest | None:
    """Store what `change` makes of the object at `place` (kind, namespace, name).

    Returns the object as stored, the last state of a removed one, or None where there was and is nothing. With
    `dry_run` every check is made and nothing is kept.
    """
    kind, namespace, name = place

    async def work(tx: WriteTx) -> Manifest | None:
        stored = await tx.get_stored(kind, namespace, name, lock=True)
        old = stored.manifest if stored else None
        new = change(old)
        if new is old:
            return old
        if new is None:
            tx.remove(kind, namespace, name)
            return None
        if kind == "Cohort":
            await _refuse_cycle(tx, new)
        tx.put(new, _tracking(stored, new, policy) if kind == "Workload" else None)
        return None

    unchanged, tx = await database.run(actor, work, dry_run=dry_run)
    return tx.written[0] if tx.written else unchanged


async def _refuse_cycle(tx: WriteTx, cohort: Manifest) -> None:
    """Kueue stores a cycle and stops scheduling in it; we say no while the person is still there."""
    name, parent = cohort["metadata"]["name"], spec_of(cohort).get("parentName")
    if not parent:
        return
    await hold_edits(tx)
    parents = {
        one["metadata"]["name"]: above
        for one in await tx.list("Cohort")
        if (above := spec_of(one).get("parentName")) and one["metadata"]["name"] != name
    }
    cycle = cohort_cycle(parents, name, parent)
    if cycle:
        message = f"would close a cycle of cohorts: {' -> '.join(cycle)}"
        raise Invalid(
            f'Cohort.kueue.x-k8s.io "{name}" is invalid: spec.parentName: {message}',
            [FieldError("spec.parentName", message)],
        )


def _tracking(stored: Stored | None, new: Manifest, policy: Policy) -> Tracking:
    """A client may give a reservation back, deactivate or finish; its row follows."""
    before = stored.tracking if stored and stored.tracking else Tracking()
    after = tracked(new, before, policy)
    if stored and must_act(stored.manifest, new):
        return decide(after, after.epoch)
    return after

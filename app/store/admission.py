"""How do the decisions of a cycle become rows, although the world moved while they were made?

One transaction for a whole cycle: guard the lease; lock the cohort roots the decisions rely on, in name order; lock the
workloads, in uid order; drop every decision whose ground has moved; write the rest with ledger, conclusions, audit and
feed. The caller redoes what was refused in its next cycle.

Why versions suffice and fit is not tested again. A decision is sound if quota and usage of its tree are what the cycle
saw. Quota: every edit of a queue, cohort, local queue, flavor, check or topology moves the version of the roots it
touches, in its own transaction and under the same lock; so a root at a version the cycle knows has the quota the cycle
knows, until this transaction ends. Usage grows only here, under the guard, hence by one leader; it moves the roots too,
so two commits made from one state cannot both pass, even by mistake. Elsewhere usage only shrinks, which makes no
admission wrong. The workload itself is compared by version and by state, as its tracking can move without a version.

No plan is half carried out where that would hurt: writes that share a `group` (the evictions for one preemptor) are
refused together. After `CommitUnknown` the caller must read the feed before it decides again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.core.manifests import Manifest
from app.errors import InvariantBroken
from app.store import decisions, ledger, roots
from app.store.audit import Actor
from app.store.changes import Change
from app.store.decisions import Conclusion
from app.store.lease import Lease, guard
from app.store.ledger import Charge
from app.store.session import Database, WriteTx
from app.store.tracking import Retrack, State, Stored, StoredWorkload, Tracking

SCHEDULER = Actor("system", "scheduler")


def unchanged(tracking: Tracking) -> Tracking:
    return tracking


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleWrite:
    """One workload as the cycle wants it.

    `manifest` carries the new status and the resourceVersion the decision was made on, `expects` the state it was made
    in. `charges` are what an admission takes: its rows in the ledger. Only an admission moves its roots; pods that ask
    for nothing are admitted without charges.
    """

    manifest: Manifest
    expects: State
    track: Retrack = unchanged
    roots: tuple[str, ...] = ()
    charges: tuple[Charge, ...] = ()
    conclusion: Conclusion | None = None
    group: str = ""

    @property
    def uid(self) -> str:
        return str(self.manifest["metadata"]["uid"])

    @property
    def version(self) -> int:
        return int(self.manifest["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """What is to be committed, and what the cycle knew of the world.

    `seen` is the change number up to which the image had been fed; `own` is what earlier commits of this leader
    returned as `roots`, for those that lie beyond `seen`.
    """

    writes: Sequence[CycleWrite]
    seen: int
    own: Mapping[str, int] = field(default_factory=dict)

    def knows(self, root: str, version: int) -> bool:
        return version <= max(self.seen, self.own.get(root, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a cycle: `refused` are uids of workloads; `roots` are new versions, to be remembered as `own`."""

    refused: frozenset[str]
    stored: tuple[Stored, ...]
    changes: tuple[Change, ...]
    roots: Mapping[str, int]


async def commit_cycle(
    database: Database, lease: Lease, cycle: Cycle, *, actor: Actor = SCHEDULER
) -> Outcome:
    """Write what still holds; raises `LeaseLost` and writes nothing when another one leads."""

    async def work(tx: WriteTx) -> list[CycleWrite]:
        await guard(tx, lease)
        return await _write_valid(tx, lease, cycle)

    accepted, tx = await database.run(actor, work)
    written = {write.uid for write in accepted}
    return Outcome(
        refused=frozenset(write.uid for write in cycle.writes if write.uid not in written),
        stored=tx.stored,
        changes=tx.changes,
        roots=tx.roots,
    )


async def _write_valid(tx: WriteTx, lease: Lease, cycle: Cycle) -> list[CycleWrite]:
    versions = await roots.lock(tx, {root for write in cycle.writes for root in write.roots})
    found = {
        stored.manifest["metadata"]["uid"]: stored
        for stored in await tx.get_locked("Workload", [write.uid for write in cycle.writes])
        if isinstance(stored, StoredWorkload)
    }
    valid = [
        write
        for write in cycle.writes
        if all(cycle.knows(root, versions[root]) for root in write.roots)
        and _is_as_decided(write, found.get(write.uid))
    ]
    accepted = _whole_groups(cycle.writes, valid)
    await _write(tx, lease, [(write, found[write.uid].tracking) for write in accepted])
    return accepted


def _is_as_decided(write: CycleWrite, found: StoredWorkload | None) -> bool:
    return (
        found is not None
        and found.version == write.version
        and found.tracking.state == write.expects
    )


def _whole_groups(writes: Sequence[CycleWrite], valid: Sequence[CycleWrite]) -> list[CycleWrite]:
    passed = {write.uid for write in valid}
    broken = {write.group for write in writes if write.group and write.uid not in passed}
    return [write for write in valid if write.group not in broken]


async def _write(
    tx: WriteTx, lease: Lease, accepted: Sequence[tuple[CycleWrite, Tracking]]
) -> None:
    charges: list[tuple[StoredWorkload, Charge]] = []
    for write, before in accepted:
        after = write.track(before)
        _check_decision(write, lease, before, after)
        tx.put(write.manifest, after)
        if after.charged and not before.charged:
            tx.bump_roots(write.roots)
        workload = StoredWorkload(write.manifest, after)
        charges.extend((workload, charge) for charge in write.charges)
    await ledger.open_spans(tx, charges)
    conclusions = [write.conclusion for write, _ in accepted if write.conclusion is not None]
    await decisions.record(tx, conclusions)


def _check_decision(write: CycleWrite, lease: Lease, before: Tracking, after: Tracking) -> None:
    """A new decision carries this leader's epoch, and nothing takes quota without its roots and a new attempt."""
    if after.decided_version != before.decided_version and after.epoch != lease.epoch:
        raise InvariantBroken(
            f"A decision for {write.uid} in epoch {after.epoch}, not {lease.epoch}."
        )
    admits = after.charged and not before.charged
    if admits and not (write.roots and after.attempt == before.attempt + 1):
        raise InvariantBroken(f"An admission of {write.uid} without roots or a new attempt.")
    if write.charges and not admits:
        raise InvariantBroken(f"Charges for {write.uid}, which is not admitted by this write.")

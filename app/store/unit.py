"""What did a transaction collect, and what does that change?

A unit of work gathers puts and removals and the rows the transaction holds locked; `edit_of` compares one step with the
row it is based on. A manifest that carries a `resourceVersion` is a change of exactly that version, one without is a
new object. An equal manifest is no change: it gets no number and no audit. What the tracking of a workload may never do
(count backwards, leave a state that ended) is refused here. No SQL.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.core.manifests import Manifest
from app.errors import Conflict, InvariantBroken, NotFound
from app.store.kinds import StoredKind, stored_kind
from app.store.tracking import Retrack, Stored, StoredWorkload, Tracking

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Put:
    manifest: Manifest
    tracking: Tracking | Retrack | None

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def uid(self) -> str:
        return str(self.manifest["metadata"]["uid"])

    @property
    def based_on(self) -> int | None:
        """The version it changes; None for a new object."""
        version = self.manifest["metadata"].get("resourceVersion")
        return None if version in (None, "") else int(version)


@dataclass(frozen=True, slots=True)
class Remove:
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One step beside the row it found: `before` is None for a new object, `after` for a removed one."""

    kind: StoredKind
    before: Stored | None
    after: Stored | None

    @property
    def type(self) -> ChangeType | None:
        """None when the manifest stays as it is (the tracking may still differ)."""
        if self.before is None:
            return "ADDED"
        if self.after is None:
            return "DELETED"
        return None if self.before.manifest == self.after.manifest else "MODIFIED"

    @property
    def tracked(self) -> bool:
        """The tracking differs."""
        return self.tracking_before != self.tracking_after

    @property
    def tracking_before(self) -> Tracking | None:
        return None if self.before is None else self.before.tracking

    @property
    def tracking_after(self) -> Tracking | None:
        return None if self.after is None else self.after.tracking

    @property
    def manifest(self) -> Manifest:
        """The object as it is after the edit; as it last was, when removed."""
        last = self.after or self.before
        if last is None:
            raise InvariantBroken("An edit without an object.")
        return last.manifest

    @property
    def metadata(self) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = self.manifest["metadata"]
        return metadata


@dataclass(slots=True)
class Unit:
    """The steps in the order they were asked for, and the rows held locked so far."""

    steps: dict[tuple[str, ...], Put | Remove] = field(default_factory=dict)
    held: dict[tuple[str, str], Stored] = field(default_factory=dict)
    #: Cohort roots whose version must move with this commit.
    bumps: set[str] = field(default_factory=set)

    def hold(self, stored: Stored) -> None:
        self.held[stored.manifest["kind"], stored.manifest["metadata"]["uid"]] = stored

    def put(self, manifest: Manifest, tracking: Tracking | Retrack | None) -> None:
        step = Put(manifest, tracking)
        if tracking is not None and stored_kind(step.kind).kind != "Workload":
            raise InvariantBroken("Only workloads carry tracking.")
        self.steps[step.kind, step.uid] = step

    def remove(self, kind: str, namespace: str, name: str) -> None:
        for key, step in list(self.steps.items()):
            if isinstance(step, Put) and _names(step) == (kind, namespace, name):
                del self.steps[key]
                if step.based_on is None:
                    return
        self.steps[kind, namespace, name] = Remove(kind, namespace, name)

    def unread(self) -> dict[str, list[str]]:
        """By kind, the uids that are to be changed but whose rows are not held yet."""
        missing: dict[str, list[str]] = {}
        for step in self.steps.values():
            if (
                isinstance(step, Put)
                and step.based_on is not None
                and (step.kind, step.uid) not in self.held
            ):
                missing.setdefault(step.kind, []).append(step.uid)
        return missing


def edit_of(step: Put, found: Stored | None) -> Edit:
    """Compare a put with the row of its uid; refuse what is based on another version."""
    kind = stored_kind(step.kind)
    if step.based_on is None:
        return Edit(kind=kind, before=None, after=_after(kind, step, None))
    if found is None:
        raise NotFound(f'{kind.resource} "{step.manifest["metadata"]["name"]}" not found')
    if found.version != step.based_on:
        raise Conflict(
            f'Operation cannot be fulfilled on {kind.resource} "{step.manifest["metadata"]["name"]}": the object has '
            "been modified; please apply your changes to the latest version and try again"
        )
    return Edit(kind=kind, before=found, after=_after(kind, step, found))


def _after(kind: StoredKind, step: Put, found: Stored | None) -> Stored:
    if kind.kind != "Workload":
        return Stored(step.manifest)
    before = None if found is None else found.tracking
    after = _tracked(step.tracking, before or Tracking())
    if before is not None and not _forward(before, after):
        raise InvariantBroken(
            f"Workload {step.uid} would go back from {before.state} (attempt {before.attempt}, epoch {before.epoch}, "
            f"decision {before.decided_version}) to {after.state} (attempt {after.attempt}, epoch {after.epoch}, "
            f"decision {after.decided_version})."
        )
    return StoredWorkload(step.manifest, after)


def _tracked(wanted: Tracking | Retrack | None, current: Tracking) -> Tracking:
    if wanted is None:
        return current
    return wanted if isinstance(wanted, Tracking) else wanted(current)


def _forward(before: Tracking, after: Tracking) -> bool:
    """Counts only grow, and what ended stays so (a finished workload's job may still go)."""
    grows = (
        after.attempt >= before.attempt
        and after.epoch >= before.epoch
        and after.decided_version >= before.decided_version
        and after.synced_version >= before.synced_version
    )
    stays = not before.ended or after.state in (before.state, "gone")
    return grows and stays


def _names(step: Put) -> tuple[str, str, str]:
    metadata = step.manifest["metadata"]
    return step.kind, metadata.get("namespace", ""), metadata["name"]

"""Server-side apply (KEP-555): what becomes of an object when a manager applies a configuration to it.

The configuration is merged into the object; what the manager applied last time and not now is taken out unless someone
else owns it. Changing a field that another manager owns is a conflict, unless forced; equal values are shared. Managers
that own fields in another version are compared in that version; for taking out, paths are read as those of the
applied version, whichever version they were recorded in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.apiserver.comparing import fields_of
from app.apiserver.errors import FieldConflict
from app.apiserver.fields import Fields, difference, intersection, paths, union
from app.apiserver.merging import check_keys, merge, prune
from app.apiserver.migration import may_take_over
from app.apiserver.ownership import (
    Actor,
    Comparer,
    Entry,
    capped,
    entries_of,
    fields_of_entry,
    less,
    ownable,
    with_owners,
)
from app.apiserver.registry import Registry, Served
from app.core.manifests import Manifest

_BEFORE_FIRST_APPLY = "before-first-apply"


def readable(config: Manifest, served: Served, subresource: str) -> Manifest:
    """What of a (checked) configuration counts: only what can be owned."""
    applied = ownable(config, subresource, has_status=served.kind.status)
    check_keys(applied, served.schema)
    return applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """One apply request; `applied` is what `readable` made of the configuration, in the version of `served`."""

    registry: Registry
    served: Served
    actor: Actor
    applied: Manifest
    force: bool

    def merged(self, live: Manifest | None) -> Manifest:
        """The object in the version of `served`, not yet defaulted; `live` is in the storage version."""
        schema = self.served.schema
        if live is None:
            head = {"apiVersion": self.served.api_version, "kind": self.served.kind.kind}
            return {**head, **self.applied}
        merged = merge(self.served.from_storage(live), self.applied, schema)
        owned = fields_of(self.applied, schema)
        last: Fields = {}
        for entry in self._owners(live):
            if self.actor.is_of(entry):
                last = fields_of_entry(entry)
            else:
                owned = union(owned, fields_of_entry(entry))
        return prune(merged, last, owned, schema)

    def tracked(self, live: Manifest | None, merged: Manifest, new: Manifest) -> Manifest:
        """`new` (defaulted) with its owners, or a conflict; all three in the storage version."""
        comparer = Comparer(self.registry, self.served, self.actor)
        owned = fields_of(self.applied, self.served.schema)
        owners: list[Entry] = []
        conflicts: list[tuple[Entry, Fields]] = []
        allowed = self._allowed(live)
        mine = self.actor.entry(owned)
        for entry in self._owners(live):
            if self.actor.is_of(entry):
                mine = _same_time(mine, entry)
                continue
            found = comparer.difference(live, merged, str(entry.get("apiVersion", "")))
            contested = intersection(fields_of_entry(entry), found.changed)
            refused = difference(contested, allowed)
            if refused:
                conflicts.append((entry, refused))
            owners += less(entry, union(contested, found.removed))
        if conflicts and not self.force:
            raise _refusal(conflicts)
        return with_owners(new, capped([*owners, mine] if owned else owners))

    def _allowed(self, live: Manifest | None) -> Fields:
        if live is None:
            return {}
        return may_take_over(self.actor, self.served.from_storage(live), self.served.schema)

    def _owners(self, live: Manifest | None) -> list[Entry]:
        """Fields of an object that nobody has tracked so far belong to a manager of that name."""
        entries = entries_of(live)
        if entries or live is None:
            return entries
        part = ownable(
            self.served.from_storage(live),
            self.actor.subresource,
            has_status=self.served.kind.status,
        )
        before = Actor(
            manager=_BEFORE_FIRST_APPLY,
            operation="Update",
            api_version=self.served.api_version,
            subresource=self.actor.subresource,
            time=self.actor.time,
        )
        return [before.entry(fields_of(part, self.served.schema))]


def _same_time(mine: Manifest, before: Entry) -> Manifest:
    unchanged = mine["fieldsV1"] == fields_of_entry(before)
    same_version = mine["apiVersion"] == before.get("apiVersion")
    return {**mine, "time": before.get("time")} if unchanged and same_version else mine


def _refusal(conflicts: Sequence[tuple[Entry, Fields]]) -> FieldConflict:
    told = [(_described(entry), path) for entry, fields in conflicts for path in paths(fields)]
    if len(told) == 1:
        manager, path = told[0]
        return FieldConflict(f"Apply failed with 1 conflict: conflict with {manager}: {path}", told)
    lines: list[str] = []
    for manager in sorted({manager for manager, _ in told}):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path}" for owner, path in told if owner == manager]
    words = "\n".join(lines)
    return FieldConflict(f"Apply failed with {len(told)} conflicts: {words}", told)


def _described(entry: Entry) -> str:
    name = f'"{entry.get("manager", "")}"'
    if entry.get("subresource"):
        name += f' with subresource "{entry["subresource"]}"'
    if entry.get("operation") == "Update":
        name += f" using {entry.get('apiVersion', '')}"
    return name

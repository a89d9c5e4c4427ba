"""Who set which field: ``metadata.managedFields``, kept up to date by every write (KEP-555).

An entry belongs to a manager, an operation (Apply or Update), an API version and a subresource. Whoever changes a
field by an update takes it from everyone else; a field that goes is nobody's. An entry's time changes only when its
fields do. Fields that only the server writes are owned by nobody and never compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.apiserver.comparing import Difference, difference_of
from app.apiserver.fields import Fields, difference, intersection, is_sound, union
from app.apiserver.registry import Registry, Served
from app.core.manifests import Manifest

Entry = Mapping[str, Any]

_MOST_UPDATERS = 10
ANCIENT = "ancient-changes"
_OWNED_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who writes, as ``managedFields`` names it."""

    manager: str
    operation: Literal["Apply", "Update"]
    api_version: str
    subresource: str
    time: str

    def is_of(self, entry: Entry) -> bool:
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == self.operation
            and entry.get("subresource", "") == self.subresource
            and (self.operation == "Apply" or entry.get("apiVersion") == self.api_version)
        )

    def entry(self, fields: Fields) -> Manifest:
        made: Manifest = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        if self.subresource:
            made["subresource"] = self.subresource
        return made


def entries_of(manifest: Manifest | None) -> list[Entry]:
    if manifest is None:
        return []
    return [entry for entry in manifest["metadata"].get("managedFields", ()) if entry]


def fields_of_entry(entry: Entry) -> Fields:
    fields: Fields = entry.get("fieldsV1") or {}
    return fields


def ownable(manifest: Manifest, subresource: str, *, has_status: bool) -> Manifest:
    """The part of an object that a client can own through this subresource."""
    if subresource == "status":
        return {"status": manifest["status"]} if "status" in manifest else {}
    hidden = ("apiVersion", "kind", "metadata", "status" if has_status else "kind")
    part = {name: value for name, value in manifest.items() if name not in hidden}
    metadata = manifest["metadata"]
    owned = {name: metadata[name] for name in _OWNED_METADATA if name in metadata}
    return {**part, "metadata": owned} if owned else part


class Comparer:
    """The differences between two objects, in each version in which someone owns fields."""

    def __init__(self, registry: Registry, served: Served, actor: Actor) -> None:
        self._registry = registry
        self._served = served
        self._actor = actor
        self._found: dict[str, Difference] = {}

    def part(self, manifest: Manifest | None, served: Served | None = None) -> Manifest:
        """What can be owned of an object that is in the storage version."""
        part: Manifest = {}
        if manifest is not None:
            shown = (served or self._served).from_storage(manifest)
            part = ownable(shown, self._actor.subresource, has_status=self._served.kind.status)
        return part if self._actor.subresource else {"metadata": {}, **part}

    def difference(self, old: Manifest | None, new: Manifest, api_version: str) -> Difference:
        """Both in the storage version; call with one pair only. An unknown version has no differences."""
        known = self._found.get(api_version)
        if known is None:
            served = self._registry.at_version(self._served.kind, api_version)
            if served is None:
                known = Difference()
            else:
                known = difference_of(self.part(old, served), self.part(new, served), served.schema)
            self._found[api_version] = known
        return known


def track_update(
    registry: Registry, served: Served, actor: Actor, old: Manifest | None, new: Manifest
) -> Manifest:
    """`new` with its owners after an update (any write but an apply)."""
    if new["metadata"].get("managedFields") == [{}]:  # the agreed way to start over
        return with_owners(new, [])
    comparer = Comparer(registry, served, actor)
    mine = comparer.difference(old, new, actor.api_version)
    before: Entry = {}
    owners: list[Entry] = []
    for entry in _base(old, new):
        if actor.is_of(entry):
            before = entry
            continue
        found = comparer.difference(old, new, str(entry.get("apiVersion", "")))
        owners += less(entry, union(found.changed, found.removed))
    owned = union(difference(fields_of_entry(before), mine.removed), mine.changed)
    if owned:
        owners.append(before if owned == fields_of_entry(before) else actor.entry(owned))
    return with_owners(new, capped(owners))


def _base(old: Manifest | None, new: Manifest) -> list[Entry]:
    """The owners before the update: what the client says if it is sound (kubectl rewrites owners when it turns from
    client-side to server-side apply), else what was kept.
    """
    kept = entries_of(old)
    told = new["metadata"].get("managedFields")
    if old is None or not told or told == kept:
        return kept
    return list(told) if all(map(_is_sound, told)) else kept


def _is_sound(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and entry.get("fieldsType") == "FieldsV1"
        and all(isinstance(entry.get(name), str) for name in ("manager", "apiVersion", "time"))
        and isinstance(entry.get("subresource", ""), str)
        and is_sound(entry.get("fieldsV1"))
    )


def less(entry: Entry, lost: Fields) -> list[Entry]:
    """The entry without some fields; no entry when none are left."""
    fields = fields_of_entry(entry)
    if not intersection(fields, lost):
        return [entry]
    rest = difference(fields, lost)
    return [{**entry, "fieldsV1": rest}] if rest else []


def capped(owners: Sequence[Entry]) -> list[Entry]:
    """In Kubernetes' order; the oldest of too many updaters become one."""
    ordered = sorted(owners, key=_order)
    updaters = [entry for entry in ordered if entry.get("operation") == "Update"]
    if len(updaters) <= _MOST_UPDATERS:
        return ordered
    surplus = updaters[: len(updaters) - _MOST_UPDATERS + 1]
    merged: Fields = {}
    for entry in surplus:
        merged = union(merged, fields_of_entry(entry))
    ancient = {**surplus[-1], "manager": ANCIENT, "fieldsV1": merged}
    ancient.pop("subresource", None)
    kept = [entry for entry in ordered if not any(entry is one for one in surplus)]
    return sorted([ancient, *kept], key=_order)


def _order(entry: Entry) -> tuple[str, ...]:
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(str(entry.get(name, "")) for name in names)


def with_owners(manifest: Manifest, owners: Sequence[Entry]) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    if owners:
        metadata["managedFields"] = list(owners)
    return {**manifest, "metadata": metadata}

"""How do manifests become rows, and rows manifests?

A law, held by a property test: reading back what was written gives an equal manifest, but for `resourceVersion`, which
the row's number replaces. Only what has a column leaves the metadata; times keep the precision they came with.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.core.manifests import Manifest
from app.store.kinds import StoredKind
from app.store.tracking import EPOCH, Stored, StoredWorkload, Tracking

_OWN_COLUMNS = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "generation",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
    }
)
_TOP_LEVEL = frozenset({"apiVersion", "kind", "metadata", "status"})


def object_columns(stored: StoredKind, manifest: Manifest) -> dict[str, Any]:
    """Every column of the object but its `resource_version`."""
    metadata = manifest["metadata"]
    spec: Any = manifest.get("spec")
    if stored.flat:
        spec = {key: value for key, value in manifest.items() if key not in _TOP_LEVEL}
    return {
        "uid": metadata["uid"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "generation": metadata.get("generation", 0),
        "created_at": read_time(metadata["creationTimestamp"]),
        "deletion_at": _optional_time(metadata.get("deletionTimestamp")),
        "metadata": {key: value for key, value in metadata.items() if key not in _OWN_COLUMNS},
        "spec": spec,
        "status": manifest.get("status"),
    }


def tracking_columns(tracking: Tracking) -> dict[str, Any]:
    return {
        "state": tracking.state,
        "attempt": tracking.attempt,
        "epoch": tracking.epoch,
        "decided_version": tracking.decided_version,
        "synced_version": tracking.synced_version,
        "next_sync_at": tracking.next_sync_at or EPOCH,
        "sync_failures": tracking.sync_failures,
        "next_deadline_at": tracking.next_deadline_at,
        "job": tracking.job,
        "template": tracking.template,
    }


def read_row(stored: StoredKind, row: Mapping[str, Any]) -> Stored:
    if stored.kind == "Workload":
        return read_workload(stored, row)
    return Stored(read_manifest(stored, row))


def read_workload(stored: StoredKind, row: Mapping[str, Any]) -> StoredWorkload:
    return StoredWorkload(read_manifest(stored, row), _read_tracking(row))


def read_manifest(stored: StoredKind, row: Mapping[str, Any]) -> Manifest:
    metadata: dict[str, Any] = {"name": row["name"]}
    if row["namespace"]:
        metadata["namespace"] = row["namespace"]
    metadata["uid"] = row["uid"]
    metadata["resourceVersion"] = str(row["resource_version"])
    if row["generation"]:
        metadata["generation"] = row["generation"]
    metadata["creationTimestamp"] = write_time(row["created_at"])
    if row["deletion_at"] is not None:
        metadata["deletionTimestamp"] = write_time(row["deletion_at"])
    metadata.update(row["metadata"])
    manifest: Manifest = {
        "apiVersion": stored.api_version,
        "kind": stored.kind,
        "metadata": metadata,
    }
    if stored.flat:
        manifest.update(row["spec"] or {})
    elif row["spec"] is not None:
        manifest["spec"] = row["spec"]
    if row["status"] is not None:
        manifest["status"] = row["status"]
    return manifest


def with_version(manifest: Manifest, number: int) -> Manifest:
    """The manifest as it is stored under `number`; the given one stays untouched."""
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(number)}}


def read_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def write_time(moment: datetime) -> str:
    """As Kubernetes writes times; a fraction of a second is kept where there is one."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _optional_time(text: str | None) -> datetime | None:
    return None if text is None else read_time(text)


def _read_tracking(row: Mapping[str, Any]) -> Tracking:
    next_sync_at = row["next_sync_at"]
    return Tracking(
        state=row["state"],
        attempt=row["attempt"],
        epoch=row["epoch"],
        decided_version=row["decided_version"],
        synced_version=row["synced_version"],
        next_sync_at=None if next_sync_at == EPOCH else next_sync_at,
        sync_failures=row["sync_failures"],
        next_deadline_at=row["next_deadline_at"],
        job=row["job"],
        template=row["template"],
    )

"""How are the parts read that every manifest has: names, times, deletion, conditions?

A manifest is plain JSON and stays so; these few readers keep the spelling of its fields in one place.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

#: A Kubernetes object as JSON: what is stored, served and applied.
Manifest = dict[str, Any]


def name_of(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def namespace_of(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("namespace") or "default")


def spec_of(manifest: Manifest) -> Manifest:
    return manifest.get("spec") or {}


def status_of(manifest: Manifest) -> Manifest:
    return manifest.get("status") or {}


def is_deleting(manifest: Manifest) -> bool:
    return bool(manifest["metadata"].get("deletionTimestamp"))


@lru_cache(maxsize=8192)
def moment(text: str) -> datetime:
    """Read an RFC 3339 time as an aware UTC one."""
    return datetime.fromisoformat(text).astimezone(UTC)


def stamp(at: datetime) -> str:
    """Write a time as Kubernetes does: RFC 3339 in UTC, whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(status: Mapping[str, Any], kind: str) -> Manifest | None:
    """The condition of that type, or None if it was never set."""
    for one in status.get("conditions") or ():
        if one["type"] == kind:
            return dict(one)
    return None


def is_true(status: Mapping[str, Any], kind: str) -> bool:
    found = condition(status, kind)
    return found is not None and found["status"] == "True"

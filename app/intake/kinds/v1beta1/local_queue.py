"""LocalQueue in v1beta1: usage is called `flavorUsage`, and `flavors` repeated what the flavors themselves say."""

from collections.abc import Mapping
from typing import Any

from app.core.manifests import Manifest
from app.intake.kinds.v1beta1.reshape import (
    as_v1beta1,
    as_v1beta2,
    changed,
    edited_schema,
    renamed,
    without,
)

_NAMES = {"flavorUsage": "flavorsUsage"}
_BACK = {"flavorsUsage": "flavorUsage"}


def to_storage(manifest: Manifest) -> Manifest:
    return changed(
        as_v1beta2(manifest), "status", lambda status: renamed(without(status, "flavors"), _NAMES)
    )


def from_storage(manifest: Manifest) -> Manifest:
    return changed(as_v1beta1(manifest), "status", lambda status: renamed(status, _BACK))


def schema(current: Mapping[str, Any]) -> dict[str, Any]:
    flavors = {
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "description": "Accepted and dropped; see the ResourceFlavors themselves.",
    }
    return edited_schema(
        current, status=lambda status: {**renamed(status, _BACK), "flavors": flavors}
    )

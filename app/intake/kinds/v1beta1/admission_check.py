"""AdmissionCheck in v1beta1: `retryDelayMinutes` could be given, and has meant nothing for long."""

from collections.abc import Mapping
from typing import Any

from app.core.manifests import Manifest
from app.intake.kinds.v1beta1.reshape import as_v1beta1, as_v1beta2, changed, edited_schema, without

from_storage = as_v1beta1


def to_storage(manifest: Manifest) -> Manifest:
    return changed(as_v1beta2(manifest), "spec", lambda spec: without(spec, "retryDelayMinutes"))


def schema(current: Mapping[str, Any]) -> dict[str, Any]:
    delay = {
        "type": "integer",
        "format": "int64",
        "description": "Accepted and ignored; the controller of the check decides when to retry.",
    }
    return edited_schema(current, spec=lambda spec: {**spec, "retryDelayMinutes": delay})

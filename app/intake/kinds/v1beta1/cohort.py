"""Cohort in v1beta1: the parent is called `parent`."""

from collections.abc import Mapping
from typing import Any

from app.core.manifests import Manifest
from app.intake.kinds.v1beta1.reshape import as_v1beta1, as_v1beta2, changed, edited_schema, renamed

_NAMES = {"parent": "parentName"}
_BACK = {"parentName": "parent"}


def to_storage(manifest: Manifest) -> Manifest:
    return changed(as_v1beta2(manifest), "spec", lambda spec: renamed(spec, _NAMES))


def from_storage(manifest: Manifest) -> Manifest:
    return changed(as_v1beta1(manifest), "spec", lambda spec: renamed(spec, _BACK))


def schema(current: Mapping[str, Any]) -> dict[str, Any]:
    return edited_schema(current, spec=lambda spec: renamed(spec, _BACK))

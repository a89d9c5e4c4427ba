"""ClusterQueue in v1beta1: `cohort`, a plain list of admission checks, and other words for flavor fungibility.

`admissionChecks` and `admissionChecksStrategy` exclude each other there. Read back, checks on all flavors appear as the
plain list and others as the strategy, so that both ways of writing can be applied again and again; naming the same
checks both ways is therefore no contradiction, naming different ones is.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from app.core.manifests import Manifest
from app.intake.kinds.faults import refused
from app.intake.kinds.place import Place
from app.intake.kinds.v1beta1.reshape import (
    as_v1beta1,
    as_v1beta2,
    changed,
    edited_schema,
    renamed,
    without,
)

_NAMES = {"cohort": "cohortName"}
_BACK = {"cohortName": "cohort"}
_OLD_WORDS = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}


def to_storage(manifest: Manifest) -> Manifest:
    _refuse_contradiction(manifest)
    stored = changed(as_v1beta2(manifest), "spec", _spec_to_storage)
    return changed(stored, "status", lambda status: without(status, "pendingWorkloadsStatus"))


def _spec_to_storage(spec: dict[str, Any]) -> dict[str, Any]:
    out = changed(
        renamed(without(spec, "admissionChecks"), _NAMES), "flavorFungibility", _new_words
    )
    checks = spec.get("admissionChecks")
    if checks and "admissionChecksStrategy" not in out:
        rules = [{"name": name} for name in checks]
        out["admissionChecksStrategy"] = {"admissionChecks": rules}
    return out


def _new_words(fungibility: dict[str, Any]) -> dict[str, Any]:
    return {
        name: "MayStopSearch" if value == _OLD_WORDS.get(name, ...) else value
        for name, value in fungibility.items()
    }


def _refuse_contradiction(manifest: Manifest) -> None:
    listed = Place(manifest).at("spec", "admissionChecks")
    rules = list(Place(manifest).items("spec", "admissionChecksStrategy", "admissionChecks"))
    if not listed.value or not rules:
        return
    same = [rule.text("name") for rule in rules] == listed.value
    if not same or any(rule.at("onFlavors").value for rule in rules):
        fault = listed.forbidden("either admissionChecks or admissionChecksStrategy can be set")
        raise refused(manifest, [fault])


def from_storage(manifest: Manifest) -> Manifest:
    return changed(as_v1beta1(manifest), "spec", _spec_from_storage)


def _spec_from_storage(spec: dict[str, Any]) -> dict[str, Any]:
    out = changed(renamed(spec, _BACK), "flavorFungibility", _old_words)
    rules = (out.get("admissionChecksStrategy") or {}).get("admissionChecks") or []
    if rules and not any(rule.get("onFlavors") for rule in rules):
        out = without(out, "admissionChecksStrategy")
        out["admissionChecks"] = [rule["name"] for rule in rules]
    return out


def _old_words(fungibility: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _OLD_WORDS.get(name, value) if value == "MayStopSearch" else value
        for name, value in fungibility.items()
    }


def schema(current: Mapping[str, Any]) -> dict[str, Any]:
    return edited_schema(current, spec=_spec_schema, status=_status_schema)


def _spec_schema(properties: dict[str, Any]) -> dict[str, Any]:
    out = renamed(properties, _BACK)
    out["admissionChecks"] = {
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "atomic",
        "description": "Checks for every flavor of the queue. Excludes admissionChecksStrategy.",
    }
    fungibility = out["flavorFungibility"] = deepcopy(out["flavorFungibility"])
    for name, word in _OLD_WORDS.items():
        field = fungibility["properties"][name]
        field["enum"] = [word, *field["enum"]]
        field["default"] = word if field["default"] == "MayStopSearch" else field["default"]
    return out


def _status_schema(properties: dict[str, Any]) -> dict[str, Any]:
    pending = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "description": "Accepted and dropped; pending workloads are listed by the visibility API.",
    }
    return {**properties, "pendingWorkloadsStatus": pending}

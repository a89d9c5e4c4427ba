"""The few moves of which conversions are made: rename, drop, change a part.

All of them copy what they change, and none minds a malformed manifest: conversion comes before validation, which will
speak about it.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from app.core.manifests import Manifest
from app.intake.kinds.fields import API_VERSION, GROUP

OLD_API_VERSION = f"{GROUP}/v1beta1"

Change = Callable[[dict[str, Any]], dict[str, Any]]


def as_v1beta2(manifest: Manifest) -> Manifest:
    return {**manifest, "apiVersion": API_VERSION}


def as_v1beta1(manifest: Manifest) -> Manifest:
    return {**manifest, "apiVersion": OLD_API_VERSION}


def changed(record: dict[str, Any], name: str, change: Change) -> dict[str, Any]:
    """The record with `change` applied to the record in that field, if there is one."""
    part = record.get(name)
    return {**record, name: change(part)} if isinstance(part, dict) else record


def each_changed(record: dict[str, Any], name: str, change: Change) -> dict[str, Any]:
    """The record with `change` applied to every element of the list in that field."""
    parts = record.get(name)
    if not isinstance(parts, list):
        return record
    return {**record, name: [change(part) if isinstance(part, dict) else part for part in parts]}


def renamed(record: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The record with fields renamed, in their old places."""
    return {names.get(name, name): value for name, value in record.items()}


def without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


def edited_schema(
    schema: Mapping[str, Any], *, spec: Change | None = None, status: Change | None = None
) -> dict[str, Any]:
    """A copy of the schema of an object, with the properties of its spec and status changed."""
    out: dict[str, Any] = deepcopy(dict(schema))
    for name, change in (("spec", spec), ("status", status)):
        if change is not None:
            part = out["properties"][name]
            part["properties"] = change(part["properties"])
    return out

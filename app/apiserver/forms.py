"""The three forms in which an object can be shown: itself, its metadata only, or a row of a printed table.

A `Presenter` is made once a request and used for every object of a list or watch. It converts to the version that was
asked for; cells are always computed from the storage version.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.apiserver.accept import Wish
from app.apiserver.durations import age
from app.apiserver.kinds import Column
from app.apiserver.registry import Served
from app.core.manifests import Manifest

_NAME = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "Unique within its namespace.",
    "priority": 0,
}


@dataclass(frozen=True, slots=True)
class Presenter:
    served: Served
    wish: Wish
    now: datetime
    include: str = "Metadata"  # what a table row carries: None, Metadata or Object

    def one(self, manifest: Manifest) -> Manifest:
        if self.wish.form == "Table":
            return self.table([manifest], manifest["metadata"].get("resourceVersion", ""))
        return self.entry(manifest)

    def entry(self, manifest: Manifest) -> Manifest:
        """One object, or one item of a list that is no table."""
        if self.wish.form.startswith("PartialObjectMetadata"):
            return partial(manifest)
        return self.served.from_storage(manifest)

    def list_head(self) -> Manifest:
        """Kind and version of a list in the wished form."""
        if self.wish.form.startswith("PartialObjectMetadata"):
            return {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        return {"kind": f"{self.served.kind.kind}List", "apiVersion": self.served.api_version}

    def table(self, manifests: list[Manifest], version: str, *, columns: bool = True) -> Manifest:
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": version},
            "columnDefinitions": self.columns() if columns else [],
            "rows": [self.row(manifest) for manifest in manifests],
        }

    def columns(self) -> list[Manifest]:
        return [_NAME, *(_definition(column) for column in self.served.kind.columns)]

    def row(self, manifest: Manifest) -> Manifest:
        cells = [self._cell(column, manifest) for column in self.served.kind.columns]
        row: Manifest = {"cells": [manifest["metadata"]["name"], *cells]}
        if self.include == "Metadata":
            row["object"] = partial(manifest)
        elif self.include == "Object":
            row["object"] = self.served.from_storage(manifest)
        return row

    def _cell(self, column: Column, manifest: Manifest) -> Any:
        value = column.cell(manifest)
        return age(value, self.now) if column.type == "date" else value


def _definition(column: Column) -> Manifest:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or column.name,
        "priority": column.priority,
    }


def partial(manifest: Manifest) -> Manifest:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": manifest["metadata"],
    }

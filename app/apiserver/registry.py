"""Which kinds are served, in which versions, and how to find one from a URL.

A `Served` is one kind in one version: it converts between that version and the storage version and holds the settled
schema. Orders are those of registration, so that discovery and OpenAPI come out the same each time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.apiserver.encoding import copy
from app.apiserver.kinds import Conversion, Kind
from app.apiserver.schemas import Schema, settle
from app.core.manifests import Manifest


@dataclass(frozen=True, slots=True)
class Served:
    kind: Kind
    version: str
    schema: Schema
    conversion: Conversion | None = None

    @property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version

    def to_storage(self, manifest: Manifest) -> Manifest:
        """May answer the very object it was given."""
        if self.conversion is None:
            return manifest
        converted = self.conversion.to_storage(manifest)
        return {**converted, "apiVersion": self.kind.api_version, "kind": self.kind.kind}

    def from_storage(self, manifest: Manifest) -> Manifest:
        """May answer the very object it was given; whoever changes it copies first."""
        if self.conversion is None:
            return manifest
        converted = self.conversion.from_storage(copy(manifest))
        return {**converted, "apiVersion": self.api_version, "kind": self.kind.kind}


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    versions: dict[str, list[Served]] = field(default_factory=dict)

    @property
    def preferred(self) -> str:
        return next(iter(self.versions))


class Registry:
    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.groups: dict[str, Group] = {}
        self._found: dict[tuple[str, str, str], Served] = {}
        for kind in kinds:
            self._add(kind, kind.version, None)
            for version, conversion in kind.served.items():
                self._add(kind, version, conversion)

    def _add(self, kind: Kind, version: str, conversion: Conversion | None) -> None:
        schema = settle(conversion.schema if conversion else kind.schema)
        served = Served(kind, version, schema, conversion)
        group = self.groups.setdefault(kind.group, Group(kind.group))
        group.versions.setdefault(version, []).append(served)
        self._found[(kind.group, version, kind.plural)] = served

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._found.get((group, version, plural))

    def at_version(self, kind: Kind, api_version: str) -> Served | None:
        """The same kind in another version, as a managedFields entry names it."""
        group, _, version = api_version.rpartition("/")
        return self.find(kind.group, version, kind.plural) if group == kind.group else None

    def named_groups(self) -> Sequence[Group]:
        return [group for name, group in self.groups.items() if name]

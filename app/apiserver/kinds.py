"""What the server must know about a kind of object in order to serve it.

A `Kind` is a value: names for discovery, a schema for `explain`, field validation and server-side apply, columns for
`kubectl get`, and one pure function, `prepare`, that defaults and validates. Nothing here knows a kind of ours: they
are registered by whoever builds the application, and the simulated cluster registers others the same way.

Manifests are always handled in the storage version (`Kind.version`); other served versions are converted at the very
edge, both ways, on every path.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core.manifests import Manifest

Prepare = Callable[[Manifest, Manifest | None], Manifest]


def keep(new: Manifest, old: Manifest | None) -> Manifest:  # noqa: ARG001 (the shape of `Prepare`)
    """The `prepare` of a kind that has no defaults and no rules."""
    return new


@dataclass(frozen=True, kw_only=True)
class Column:
    """One printed column.

    `cell` reads the storage version. A column of type ``date`` gives a timestamp and is printed as an age;
    `priority` above 0 means "only with -o wide".
    """

    name: str
    cell: Callable[[Manifest], Any]
    type: str = "string"
    priority: int = 0
    description: str = ""
    format: str = ""


AGE = Column(
    name="Age",
    type="date",
    cell=lambda manifest: manifest["metadata"].get("creationTimestamp"),
    description="Time since the object was created.",
)


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """Another served version of a kind. Both functions are pure and must not change what they are given."""

    to_storage: Callable[[Manifest], Manifest]
    from_storage: Callable[[Manifest], Manifest]
    schema: Mapping[str, Any]
    deprecated: str = ""  # told in a Warning header to whoever uses this version


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One registered kind.

    `schema` is an OpenAPI v3 schema of the whole object; local ``$ref``s into its own ``$defs`` are resolved, its
    descriptions feed ``kubectl explain``, and ``x-kubernetes-list-type``, ``-list-map-keys``, ``-map-type``,
    ``-int-or-string`` and ``-preserve-unknown-fields`` are honoured. `metadata` need not be described.

    `prepare` takes (new, old or None at creation) and returns the defaulted new object, or raises
    `app.errors.Invalid` with `FieldError`s. It is pure, may change `new` in place (it is the caller's own copy)
    and never changes `old`.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    schema: Mapping[str, Any]
    prepare: Prepare = keep
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = True  # has /status, and then the main resource cannot write status
    columns: tuple[Column, ...] = ()  # NAME is always first and implicit, AGE only if listed
    served: Mapping[str, Conversion] = field(default_factory=dict)
    preserve_unknown: bool = False  # no unknown-field check, nothing pruned
    selectable: tuple[str, ...] = ()  # field selectors beyond metadata.name and metadata.namespace
    unconditional_update: bool = (
        False  # PUT without resourceVersion: built-in kinds allow it, CRDs do not
    )

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """``clusterqueues.kueue.x-k8s.io``: how messages name the kind."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the kind across versions: (group, plural)."""
        return (self.group, self.plural)

"""How a kind of ours is taken in: defaults, structure, rules, and what may change from one version to the next.

A `Definition` joins the model of a kind with its rules and offers the one function that the API server calls for every
write, whatever the verb: `prepare(new, old)`. All faults of an object are reported together. A part that did not change
is not judged again: a status update of a Workload does not pay for its pod templates, and an object stored under older,
laxer rules can still have its status written.

The order is Kubernetes' own: defaults, finalizer, structure, then meaning; the given manifests are never changed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson
from pydantic import ValidationError

from app.core.manifests import Manifest
from app.errors import FieldError
from app.intake.kinds import defaults, duplicates, faults, metadata
from app.intake.kinds.fields import Object
from app.intake.kinds.openapi import structural
from app.intake.kinds.place import Place

Rules = Callable[[Place], Iterator[FieldError]]
Transition = Callable[[Place, Place], Iterator[FieldError]]


def no_rules(manifest: Place) -> Iterator[FieldError]:  # noqa: ARG001 (the shape of `Rules`)
    return iter(())


def no_transition(new: Place, old: Place) -> Iterator[FieldError]:  # noqa: ARG001 (the shape of `Transition`)
    return iter(())


@dataclass(frozen=True, kw_only=True)
class Definition:
    """`rules` judge what the user wants, `status_rules` what controllers report; each gets the whole manifest.

    `metadata_rules` are those of annotations with a meaning. `creation_rules` run for new objects only, `transition`
    compares with the stored object on every update.
    """

    model: type[Object]
    rules: Rules = no_rules
    status_rules: Rules = no_rules
    metadata_rules: Rules = no_rules
    creation_rules: Rules = no_rules
    transition: Transition = no_transition
    finalizer: bool = False

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        return structural(self.model)

    @cached_property
    def _fill(self) -> defaults.Fill:
        return defaults.compiled(self.schema)

    @cached_property
    def _duplicates(self) -> duplicates.Search:
        return duplicates.compiled(self.schema)

    def prepare(self, new: Manifest, old: Manifest | None = None) -> Manifest:
        """The manifest as it will be stored, or `Invalid` with everything that is wrong with it."""
        manifest = self._fill(new)
        if self.finalizer and old is None:
            manifest = metadata.with_finalizer(manifest)
        found = self._found(manifest, old)
        if found:
            raise faults.refused(manifest, found)
        return manifest  # type: ignore[no-any-return]

    def _found(self, manifest: Manifest, old: Manifest | None) -> list[FieldError]:
        """Each field is told of once: where its structure is wrong, rules about it stay silent."""
        settled = _settled(manifest, old)
        judged = {key: value for key, value in manifest.items() if key not in settled}
        found = [*self._structure(judged), *self._duplicates(judged)]
        told = {fault.path for fault in found}
        meant = self._meant(Place(manifest), old, settled)
        return found + [fault for fault in meant if fault.path not in told]

    def _meant(
        self, manifest: Place, old: Manifest | None, settled: frozenset[str]
    ) -> Iterator[FieldError]:
        if old is None:
            yield from self.creation_rules(manifest)
        else:
            yield from self.transition(manifest, Place(old))
        if "metadata" not in settled:
            yield from self.metadata_rules(manifest)
        if "spec" not in settled:
            yield from self.rules(manifest)
        if not {"spec", "status"} <= settled:  # status rules read the spec too
            yield from self.status_rules(manifest)

    def _structure(self, judged: Manifest) -> list[FieldError]:
        try:
            self.model.__pydantic_validator__.validate_python(judged)
        except ValidationError as error:
            return faults.translated(error.errors(include_url=False), self.schema)
        return []


def _settled(manifest: Manifest, old: Manifest | None) -> frozenset[str]:
    """The parts that are as they were."""
    if old is None:
        return frozenset()
    return frozenset(
        part for part in ("metadata", "spec", "status") if _same(manifest.get(part), old.get(part))
    )


def _same(new: Any, old: Any) -> bool:
    """Equal as JSON: Python alone would let ``True`` pass for 1."""
    if new is old:
        return True
    return bool(new == old) and _written(new) == _written(old)


def _written(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        return repr(value).encode(errors="backslashreplace")

"""How is a change to a job written down so that the apiserver refuses it when the job has moved?

Every `Patch` carries the uid and the resourceVersion it was computed from, so it can land once, on that very object,
or not at all (409). `project` and `difference` are the two halves of restoring: keep the few fields a start touches,
and later say with a merge patch (RFC 7396) what must change to have exactly those again. Nothing here knows a kind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.core.manifests import Manifest

PatchType = Literal["merge", "json"]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One write to one object. `final` is false when another write must follow before the purpose is reached."""

    body: Any
    type: PatchType = "merge"
    subresource: str | None = None
    final: bool = True


def preconditions(manifest: Manifest) -> Manifest:
    """The part of a merge patch's metadata that makes it refuse any other object or version."""
    metadata = manifest["metadata"]
    return {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}


def project(manifest: Manifest, paths: Iterable[Path]) -> Manifest:
    """The fields at `paths` that exist, in their places; the maps on the way are kept even when they hold nothing."""
    kept: Manifest = {}
    for path in paths:
        _keep(manifest, path, kept)
    return kept


def _keep(source: Mapping[str, Any], path: Path, kept: Manifest) -> None:
    for step in path[:-1]:
        if not isinstance(source.get(step), dict):
            return
        source = source[step]
        kept = kept.setdefault(step, {})
    if source.get(path[-1]) is not None:
        kept[path[-1]] = source[path[-1]]


def difference(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> Manifest:
    """The merge patch that turns `current` into `wanted`; empty when they are equal already."""
    patch: Manifest = dict.fromkeys(name for name in current if name not in wanted)
    for name, value in wanted.items():
        present = current.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            nested = difference(present, value)
            if nested:
                patch[name] = nested
        elif name not in current or present != value:
            patch[name] = value
    return patch

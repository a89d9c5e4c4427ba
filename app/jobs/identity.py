"""Which kind of job is this, which object is it, and who owns it?

`JobKind` names a kind the way a cluster client and an owner reference need it. The readers below take any Kubernetes
object; they trust the apiserver that metadata is well formed, and answer "nothing" for what is absent. Whether an
owner is itself queued is a question for whoever can look the owner up, not for this module.
"""

from dataclasses import dataclass

from app.core.manifests import Manifest
from app.jobs.labels import QUEUE_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    group: str
    version: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The controlling owner of an object. `uid` must match the living owner's, or the reference is stale or forged."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


def controller_owner(manifest: Manifest) -> Owner | None:
    for reference in manifest["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return Owner(
                api_version=reference["apiVersion"],
                kind=reference["kind"],
                name=reference["name"],
                uid=reference["uid"],
            )
    return None


def queue_name(manifest: Manifest) -> str:
    """The LocalQueue asked for; an empty label asks for none."""
    return label(manifest, QUEUE_NAME) or ""


def label(manifest: Manifest, name: str) -> str | None:
    value: str | None = (manifest["metadata"].get("labels") or {}).get(name)
    return value


def annotation(manifest: Manifest, name: str) -> str | None:
    value: str | None = (manifest["metadata"].get("annotations") or {}).get(name)
    return value


def number(text: str | None) -> int | None:
    """A non-negative whole number as labels and annotations carry it; anything else counts as absent."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None

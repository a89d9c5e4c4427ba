"""What is kept of an object when it comes off the wire?

Lists and watch events are opened as envelopes whose objects stay raw bytes; a codec then turns each object into what
the receiver reads. `ManifestCodec` keeps the whole object as a dict, without ``managedFields``; `StructCodec` keeps
only the fields of a msgspec Struct, which is some ten times cheaper in time and memory and right for pods and nodes.
"""

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from app.core.manifests import Manifest


class ObjectRef(NamedTuple):
    """One incarnation of one object at one version. `namespace` is empty for what has none."""

    namespace: str
    name: str
    uid: str
    resource_version: str


class ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, rename="camel"):
    metadata: ListMeta
    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None


class Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class VersionOnly(msgspec.Struct, gc=False):
    """What a bookmark carries."""

    metadata: ListMeta


PAGES = msgspec.json.Decoder(Page)
EVENTS = msgspec.json.Decoder(Event)
BOOKMARKS = msgspec.json.Decoder(VersionOnly)
ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

T = TypeVar("T")


class Codec(Protocol[T]):
    def decode(self, raw: msgspec.Raw, api_version: str, kind: str) -> T:
        """`api_version` and `kind` are the list's, for items that leave their own out; empty for events."""
        ...

    def ref(self, item: T) -> ObjectRef: ...


class ManifestCodec:
    """The object as it is, less ``managedFields``."""

    def decode(self, raw: msgspec.Raw, api_version: str, kind: str) -> Manifest:
        manifest: Manifest = ANYTHING.decode(raw)
        if api_version and "kind" not in manifest:
            manifest = {"apiVersion": api_version, "kind": kind, **manifest}
        manifest["metadata"].pop("managedFields", None)
        return manifest

    def ref(self, item: Manifest) -> ObjectRef:
        metadata = item["metadata"]
        return ObjectRef(
            metadata.get("namespace", ""),
            metadata["name"],
            metadata["uid"],
            metadata["resourceVersion"],
        )


class Metadata(msgspec.Struct, rename="camel", gc=False):
    """The metadata that every slim object has; subclass it to read more."""

    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    labels: dict[str, str] = {}


class SlimObject(msgspec.Struct, rename="camel", gc=False):
    metadata: Metadata


S = TypeVar("S", bound=SlimObject)


class StructCodec(Generic[S]):
    """The fields of `shape` and nothing else."""

    def __init__(self, shape: type[S]) -> None:
        self._decoder = msgspec.json.Decoder(shape)

    def decode(self, raw: msgspec.Raw, _api_version: str, _kind: str) -> S:
        return self._decoder.decode(raw)

    def ref(self, item: S) -> ObjectRef:
        metadata = item.metadata
        return ObjectRef(metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)


def in_slices(items: list[T], size: int) -> Iterable[list[T]]:
    """Pieces small enough that decoding one does not hold up the event loop."""
    return (items[start : start + size] for start in range(0, len(items), size))

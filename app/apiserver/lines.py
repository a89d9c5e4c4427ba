"""How one change looks on a watch: a JSON line in the form that the client wished.

The plain and the metadata form depend on nothing but the object, so their bytes are kept for a while and shared by all
watches of a kind: with many clients each change is still encoded once. Rows of a table carry ages and are made anew.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from app.apiserver.encoding import encode
from app.apiserver.forms import Presenter, partial
from app.apiserver.selectors import Matches
from app.apiserver.storage import WatchEvent
from app.core.manifests import Manifest

_KEPT_LINES = 2048


class LineCache:
    """The most recent lines, by what they depend on; shared by all watches of a server."""

    def __init__(self) -> None:
        self._lines: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> bytes | None:
        return self._lines.get(key)

    def put(self, key: tuple[Any, ...], line: bytes) -> None:
        self._lines[key] = line
        if len(self._lines) > _KEPT_LINES:
            self._lines.popitem(last=False)


def seen_as(event: WatchEvent, matches: Matches | None) -> str | None:
    """What a selecting watch makes of a change; None when the change does not concern it."""
    if matches is None:
        return event.type
    before = event.old is not None and matches(event.old)
    if event.type == "DELETED":
        return "DELETED" if before else None
    if matches(event.object):
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else None


class Lines:
    """The lines of one watch. A table names its columns only the first time."""

    def __init__(self, shown: Presenter, matches: Matches | None, cache: LineCache) -> None:
        self._shown = shown
        self._matches = matches
        self._cache = cache
        self._columns_told = False

    @property
    def media(self) -> str:
        return self._shown.wish.media

    def of(self, events: Iterable[WatchEvent]) -> bytes:
        told = ((seen_as(event, self._matches), event.object) for event in events)
        return b"".join(self.line(kind, manifest) for kind, manifest in told if kind)

    def added(self, manifests: Iterable[Manifest]) -> bytes:
        chosen = (one for one in manifests if self._matches is None or self._matches(one))
        return b"".join(self.line("ADDED", one) for one in chosen)

    def line(self, kind: str, manifest: Manifest) -> bytes:
        if self._shown.wish.form == "Table":
            return _encode(kind, self._table(manifest))
        served = self._shown.served
        version = manifest["metadata"].get("resourceVersion")
        key = (served.kind.key, served.version, self._shown.wish.form, kind, version)
        line = self._cache.get(key)
        if line is None:
            line = _encode(kind, self._shown.entry(manifest))
            self._cache.put(key, line)
        return line

    def _table(self, manifest: Manifest) -> Manifest:
        version = manifest["metadata"].get("resourceVersion", "")
        first, self._columns_told = not self._columns_told, True
        return self._shown.table([manifest], version, columns=first)

    def bookmark(self, number: int, annotations: Mapping[str, str] | None = None) -> bytes:
        metadata: Manifest = {"resourceVersion": str(number)}
        if annotations:
            metadata["annotations"] = annotations
        return _encode("BOOKMARK", self._carrier(metadata))

    def _carrier(self, metadata: Manifest) -> Manifest:
        """An object of the watched form that says nothing but `metadata`."""
        if self._shown.wish.form == "Table":
            table = self._shown.table([], "", columns=False)
            return {**table, "metadata": metadata}
        if self._shown.wish.form:
            return partial({"metadata": metadata})
        served = self._shown.served
        return {
            "kind": served.kind.kind,
            "apiVersion": served.api_version,
            "metadata": metadata,
        }


def error_line(status: Manifest) -> bytes:
    """The last line of a watch that failed."""
    return _encode("ERROR", status)


def _encode(kind: str, manifest: Manifest) -> bytes:
    return encode({"type": kind, "object": manifest}) + b"\n"

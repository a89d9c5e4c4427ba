"""One kind's objects in memory, with a bounded log of their changes for watches to read at their own pace.

Both storages keep their objects on shelves: the simulated cluster because it has nothing else, Sluice's own API as the
cache in front of Postgres. A watch that asks for more than the log still holds gets `Gone`, as a real cluster answers
410 after compaction. There is no lock: everything between two awaits is atomic on one event loop.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.apiserver.storage import WatchEvent
from app.core.manifests import Manifest
from app.errors import Gone

Place = tuple[str, str]  # (namespace or "", name)


@dataclass(slots=True)
class Shelf:
    """`horizon` is the number of the newest change that the log has forgotten."""

    horizon: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _objects: dict[Place, Manifest] = field(default_factory=dict)
    _places: list[Place] | None = None  # of all objects, sorted; None after filling
    _order: list[Manifest] | None = None  # all objects, sorted; None after a change
    _log: list[WatchEvent] = field(default_factory=list)

    def find(self, namespace: str | None, name: str) -> Manifest | None:
        return self._objects.get((namespace or "", name))

    def fill(self, manifest: Manifest) -> None:
        """Put an object there that was there before the log begins."""
        self._objects[place_of(manifest)] = manifest
        self._places = self._order = None

    def record(self, event: WatchEvent, limit: int) -> None:
        """Apply a change and remember it; the log keeps `limit` changes at least."""
        self._put(place_of(event.object), None if event.type == "DELETED" else event.object)
        self._log.append(event)
        if len(self._log) >= 2 * limit:
            self.forget(self._log[-limit - 1].resource_version)
        self.changed.set()
        self.changed = asyncio.Event()

    def _put(self, place: Place, manifest: Manifest | None) -> None:
        """Keep the places sorted by moving one, since sorting tens of thousands holds the loop."""
        was_there = place in self._objects
        if manifest is not None:
            self._objects[place] = manifest
        else:
            self._objects.pop(place, None)
        self._order = None
        if self._places is None or was_there is (manifest is not None):
            return
        at = bisect_left(self._places, place)
        if was_there:
            del self._places[at]
        else:
            self._places.insert(at, place)

    def forget(self, number: int) -> None:
        """Drop the log up to `number`."""
        cut = bisect_right(self._log, number, key=_number)
        if cut:
            self.horizon = self._log[cut - 1].resource_version
            del self._log[:cut]

    def close(self, number: int) -> None:
        """Everything up to `number` is forgotten: watches that are not beyond it get `Gone`."""
        self.forget(number)
        self.horizon = max(self.horizon, number)

    def since(self, number: int) -> Sequence[WatchEvent]:
        if number < self.horizon:
            raise Gone(f"too old resource version: {number} ({self.horizon})")
        return self._log[bisect_right(self._log, number, key=_number) :]

    def sorted(self) -> list[Manifest]:
        """All objects by namespace and name; the list is shared, nobody changes it."""
        if self._order is None:
            self._order = [self._objects[place] for place in self._sorted_places()]
        return self._order

    def within(self, namespace: str) -> list[Manifest]:
        """The objects of one namespace, by name."""
        places = self._sorted_places()
        first = bisect_left(places, (namespace, ""))
        last = bisect_left(places, (namespace + "\0", ""))
        return [self._objects[place] for place in places[first:last]]

    def _sorted_places(self) -> list[Place]:
        if self._places is None:
            self._places = sorted(self._objects)
        return self._places


def place_of(manifest: Manifest) -> Place:
    metadata = manifest["metadata"]
    return (metadata.get("namespace") or "", metadata["name"])


def _number(event: WatchEvent) -> int:
    return event.resource_version

"""How do the controllers of the simulated cluster tell people what happened?

As Events on the object. The same thing told again raises the count of the first event, and only so many events are
kept: the oldest goes.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from app.core.manifests import Manifest
from app.errors import Forbidden, NotFound
from app.sandbox.kinds.events import EVENT
from app.sandbox.times import stamp
from app.sandbox.writer import Writer

_Told = tuple[str, str, str]  # (uid, reason, message)


class Recorder:
    def __init__(self, writer: Writer, clock: Callable[[], datetime], limit: int = 5_000) -> None:
        self._writer = writer
        self._clock = clock
        self._limit = limit
        self._told: dict[_Told, Manifest] = {}

    async def tell(
        self, about: Manifest, source: str, reason: str, message: str, kind: str = "Normal"
    ) -> None:
        told = (about["metadata"]["uid"], reason, message)
        known = self._told.pop(told, None)
        if known is not None and await self._repeat(known):
            self._told[told] = known
            return
        event = self._event(about, source, reason, message, kind)
        with suppress(Forbidden, NotFound):  # a namespace on its way out takes no events
            self._told[told] = await self._writer.create(EVENT, event)
        if len(self._told) > self._limit:
            oldest = self._told.pop(next(iter(self._told)))
            await self._writer.delete(EVENT, oldest)

    async def _repeat(self, event: Manifest) -> bool:
        def once_more(current: Manifest) -> Manifest:
            last = stamp(self._clock())
            return {**current, "count": current["count"] + 1, "lastTimestamp": last}

        return await self._writer.change(EVENT, event, once_more) is not None

    def _event(
        self, about: Manifest, source: str, reason: str, message: str, kind: str
    ) -> Manifest:
        metadata, now = about["metadata"], stamp(self._clock())
        involved = {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        if metadata.get("namespace"):
            involved["namespace"] = metadata["namespace"]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "generateName": f"{metadata['name'][:50]}.",
                "namespace": metadata.get("namespace") or "default",
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": kind,
            "source": {"component": source},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "reportingComponent": source,
        }

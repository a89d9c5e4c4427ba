"""What is in the cluster now, and what changes?

A `Reflector` follows one kind: a list in pages, then a watch from the list's version, then again from the last version
seen, for ever. Its promises: the receiver gets the latest state of every object and the deletion of every vanished
one, also of those that vanished while nobody watched; it never takes a load balancer's error page for events; it never
hammers a cluster that refuses or hangs up, and never waits on one that fell silent. It ends only by cancellation or by
an error of the receiver that trying again cannot cure; whatever the cluster does, it goes on.

Only names, uids and versions stay in memory, since Postgres is the record.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

import msgspec
import structlog

from app.errors import AppError, Gone
from app.kube import errors
from app.kube.client import EVERYTHING, PAGE, KubeClient, Selection, WatchStart
from app.kube.codec import (
    ANYTHING,
    BOOKMARKS,
    EVENTS,
    PAGES,
    Codec,
    Event,
    ObjectRef,
    Page,
    in_slices,
)
from app.kube.lines import LineSplitter, LineTooLong
from app.kube.outbox import Outbox, Sink
from app.kube.pacing import Backoff
from app.kube.resources import Resource
from app.kube.tracker import Name, Tracker, is_newer

T = TypeVar("T")
Known = Callable[[], Awaitable[Mapping[Name, str]]]

_log = structlog.get_logger(__name__)

_SLICE = 64
_FAILURES_BEFORE_LIST = 6
_UNREADABLE = (msgspec.MsgspecError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Generic[T]):
    """What to follow, and how much of each object to keep."""

    resource: Resource
    codec: Codec[T]
    selection: Selection = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """All spans and sizes. After `silence_s` without a byte the peer may be dead, and the watch is opened anew."""

    window_s: float = 0.02
    batch: int = 500
    page: int = PAGE
    silence_s: float = 150.0
    watch_least_s: int = 300
    watch_most_s: int = 600
    settled_s: float = 5.0
    first_backoff_s: float = 0.2
    most_backoff_s: float = 30.0


@dataclass(slots=True, kw_only=True)
class Health:
    """For readiness and metrics. `heard_at` is the event loop's time of the last sign of life, bookmarks included."""

    synced: asyncio.Event = field(default_factory=asyncio.Event)
    heard_at: float | None = None
    lists: int = 0
    list_duration_s: float = 0.0
    watches: int = 0
    events: int = 0
    undecodable: int = 0
    error: str = ""


async def nothing_known() -> Mapping[Name, str]:
    return {}


class Reflector(Generic[T]):
    """Start with `run`. `known` names what the receiver holds, as (namespace, name) to uid.

    It is asked before each list, so that what it names and the list lacks is reported as deleted.
    """

    def __init__(
        self,
        client: KubeClient,
        source: Source[T],
        sink: Sink[T],
        *,
        random: Random,
        known: Known = nothing_known,
        pace: Pace | None = None,
    ) -> None:
        self._client = client
        self._source = source
        self._sink = sink
        self._random = random
        self._known = known
        self._pace = pace or Pace()
        self._backoff = self._new_backoff()
        self.health = Health()
        self._start_over()

    async def run(self) -> None:
        """Follow for ever. A second run starts over with a list, as what the first had not handed over is lost."""
        self._start_over()
        tasks = [
            asyncio.create_task(self._outbox.deliver(), name=f"deliver {self._source.resource}"),
            asyncio.create_task(self._follow(), name=f"follow {self._source.resource}"),
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _start_over(self) -> None:
        self._version: str | None = None
        self._silent = False
        self.health.synced.clear()
        self._outbox: Outbox[T] = Outbox(
            self._sink,
            self._new_backoff(),
            self.health.synced,
            window_s=self._pace.window_s,
            most=self._pace.batch,
        )
        self._tracker: Tracker[T] = Tracker(self._outbox)

    def _new_backoff(self) -> Backoff:
        pace = self._pace
        return Backoff(self._random, first_s=pace.first_backoff_s, most_s=pace.most_backoff_s)

    async def _follow(self) -> None:
        while True:
            asked: float | None = None
            try:
                if self._silent and self._version is not None:
                    await self._doubt(self._version)
                if self._version is None:
                    self._version = await self._list()
                await self._watch(self._version)
            except AppError as error:
                asked = self._note(error)
            if self._backoff.failures >= _FAILURES_BEFORE_LIST:
                self._version = None
            await asyncio.sleep(self._backoff.next_s(asked))

    def _note(self, error: AppError) -> float | None:
        """Remember a failure; the answer is how long the server asked us to wait."""
        if isinstance(error, Gone):
            self._version = None
        self.health.error = error.message
        log = _log.info if isinstance(error, Gone) else _log.warning
        log("reflector interrupted", resource=str(self._source.resource), error=error.message)
        wait: float | None = getattr(error, "retry_after_s", None)
        return wait

    async def _list(self) -> str:
        """Deliver everything that exists and what no longer does; the answer is where to watch from."""
        loop = asyncio.get_running_loop()
        begun_at = loop.time()
        self._tracker.begin_list(await self._known())
        token = ""
        while True:
            page = await self._page(token, limit=self._pace.page)
            await self._take_page(page)
            token = page.metadata.continue_
            if not token:
                break
        self._tracker.end_list()
        self._outbox.end_list()
        self.health.lists += 1
        self.health.list_duration_s = loop.time() - begun_at
        return page.metadata.resource_version

    async def _page(self, token: str, *, limit: int) -> Page:
        source = self._source
        body = await self._client.list_page(
            source.resource, source.selection, limit=limit, token=token
        )
        self._heard()
        try:
            return PAGES.decode(body)
        except msgspec.MsgspecError as error:
            raise errors.unanswered(f"list {source.resource}", "the list is broken") from error

    async def _take_page(self, page: Page) -> None:
        kind = page.kind.removesuffix("List")
        for items in in_slices(page.items or [], _SLICE):
            for raw in items:
                found = self._decoded(raw, page.api_version, kind)
                if found is not None:
                    self._tracker.listed(*found)
            await asyncio.sleep(0)
        await self._outbox.room()

    async def _watch(self, version: str) -> None:
        """Follow events until the server ends the watch; every way it can end otherwise is an `AppError`."""
        pace, source = self._pace, self._source
        start = WatchStart(
            resource_version=version,
            timeout_s=self._random.randint(pace.watch_least_s, pace.watch_most_s),
            silence_s=pace.silence_s,
        )
        async with self._client.watch(source.resource, source.selection, start) as chunks:
            self.health.watches += 1
            self.health.error = ""
            begun_at = asyncio.get_running_loop().time()
            try:
                await self._read(chunks)
            finally:
                self._judge(begun_at)

    def _judge(self, begun_at: float) -> None:
        """After a watch: did it last long enough to forget earlier failures, and did it say anything at all?"""
        if asyncio.get_running_loop().time() - begun_at > self._pace.settled_s:
            self._backoff.reset()
        heard_at = self.health.heard_at
        self._silent = heard_at is None or heard_at < begun_at

    async def _doubt(self, version: str) -> None:
        """After a silent watch: list if the cluster has gone back in time, because etcd was restored from a backup.

        kube-apiserver is silent on a watch from a version that it has not reached yet, and just as silent when
        nothing happens (a bookmark needs progress). One cheap look at where it is tells which it was.
        """
        page = await self._page("", limit=1)
        self._silent = False
        if is_newer(version, page.metadata.resource_version):
            self._version = None

    async def _read(self, chunks: AsyncIterator[bytes]) -> None:
        splitter = LineSplitter()
        async for chunk in chunks:
            self._heard()
            for lines in in_slices(self._lines(splitter, chunk), _SLICE):
                for line in lines:
                    self._handle(line)
                await asyncio.sleep(0)
            await self._outbox.room()

    def _lines(self, splitter: LineSplitter, chunk: bytes) -> list[bytes]:
        try:
            return splitter.feed(chunk)
        except LineTooLong as error:
            # The same line would come again from the same version: only a list gets past it.
            self._version = None
            raise self._broken("an event is too long") from error

    def _handle(self, line: bytes) -> None:
        try:
            event = EVENTS.decode(line)
            if event.type == "BOOKMARK":
                self._advance(BOOKMARKS.decode(event.object).metadata.resource_version)
                return
            if event.type == "ERROR":
                self._fail(ANYTHING.decode(event.object))
        except msgspec.MsgspecError as error:
            raise self._broken("an event is broken") from error
        self._take_event(event)

    def _fail(self, status: object) -> None:
        self._version = None
        raise errors.from_status(
            status if isinstance(status, dict) else {}, f"watch {self._source.resource}"
        )

    def _take_event(self, event: Event) -> None:
        self.health.events += 1
        self._backoff.reset()
        found = self._decoded(event.object, "", "")
        if found is None:
            return
        ref, item = found
        if event.type == "DELETED":
            self._tracker.deleted(ref)
        else:
            self._tracker.changed(ref, item)
        self._advance(ref.resource_version)

    def _advance(self, version: str) -> None:
        """Watch from here next time; an overtaken event does not take us back."""
        if self._version is None or is_newer(version, self._version):
            self._version = version

    def _decoded(self, raw: msgspec.Raw, api_version: str, kind: str) -> tuple[ObjectRef, T] | None:
        """One object; one that cannot be read is counted and left out, so that it does not stop the others."""
        codec = self._source.codec
        try:
            item = codec.decode(raw, api_version, kind)
            return codec.ref(item), item
        except _UNREADABLE as error:
            self.health.undecodable += 1
            _log.warning("object unreadable", resource=str(self._source.resource), error=str(error))
            return None

    def _broken(self, why: str) -> AppError:
        return errors.unanswered(f"watch {self._source.resource}", why)

    def _heard(self) -> None:
        self.health.heard_at = asyncio.get_running_loop().time()

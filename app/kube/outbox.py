"""How do single changes become batches that the receiver has surely taken?

Changes wait here keyed by uid, so of several versions of one object only the latest goes out. A batch leaves when a
short window has passed or enough objects wait. The receiver's failure, if trying again can help, means the same batch
again, after a growing wait; meanwhile newer changes collect behind it, and a reader that gets too far ahead is held
back. So nothing is lost and memory stays bounded, however slow or broken the receiver is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

import structlog

from app.errors import AppError
from app.kube.codec import ObjectRef
from app.kube.pacing import Backoff

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Generic[T]):
    """What changed since the batch before. Take `deleted` first: an object made anew under its old name is in both.

    `full` marks the end of a complete list: everything that exists has been delivered, and everything known that no
    longer exists is among the deletions of this batch or an earlier one. `synced` says that there has been such an end.
    """

    changed: list[T]
    deleted: list[ObjectRef]
    full: bool
    synced: bool


Sink = Callable[[Batch[T]], Awaitable[None]]


class Outbox(Generic[T]):
    """`synced` is set once the end of a list has been taken by the receiver."""

    def __init__(
        self,
        sink: Sink[T],
        backoff: Backoff,
        synced: asyncio.Event,
        *,
        window_s: float,
        most: int,
    ) -> None:
        self._sink = sink
        self._backoff = backoff
        self._window_s = window_s
        self._most = most
        self._waiting: dict[str, tuple[ObjectRef, T | None]] = {}
        self._before_end: int | None = None
        self._something = asyncio.Event()
        self._enough = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._synced = synced

    def change(self, ref: ObjectRef, item: T) -> None:
        self._put(ref, item)

    def delete(self, ref: ObjectRef) -> None:
        self._put(ref, None)

    def end_list(self) -> None:
        """What has been put so far completes a list; the batch that carries the last of it will say so."""
        self._before_end = len(self._waiting)
        self._something.set()
        self._enough.set()

    async def room(self) -> None:
        """Wait until the receiver has caught up enough for more to be put."""
        await self._room.wait()

    async def deliver(self) -> None:
        """Hand over batches, for ever; ends only by an error that trying again cannot cure."""
        while True:
            await self._something.wait()
            await self._gather()
            batch = self._take()
            await self._hand_over(batch)
            if batch.full:
                self._synced.set()

    def _put(self, ref: ObjectRef, item: T | None) -> None:
        self._waiting[ref.uid] = (ref, item)
        self._something.set()
        if len(self._waiting) >= self._most:
            self._enough.set()
        if len(self._waiting) >= 4 * self._most:
            self._room.clear()

    async def _gather(self) -> None:
        if self._enough.is_set():
            return
        try:
            async with asyncio.timeout(self._window_s):
                await self._enough.wait()
        except TimeoutError:
            pass

    def _take(self) -> Batch[T]:
        taken = [self._waiting.pop(uid) for uid in list(islice(self._waiting, self._most))]
        full = self._before_end is not None and self._before_end <= len(taken)
        if full:
            self._before_end = None
        elif self._before_end is not None:
            self._before_end -= len(taken)
        self._mark()
        return Batch(
            changed=[item for _, item in taken if item is not None],
            deleted=[ref for ref, item in taken if item is None],
            full=full,
            synced=full or self._synced.is_set(),
        )

    def _mark(self) -> None:
        pending_end = self._before_end is not None
        if not self._waiting and not pending_end:
            self._something.clear()
        if len(self._waiting) < self._most and not pending_end:
            self._enough.clear()
        if len(self._waiting) < 2 * self._most:
            self._room.set()

    async def _hand_over(self, batch: Batch[T]) -> None:
        while True:
            try:
                await self._sink(batch)
            except (AppError, OSError) as error:
                if isinstance(error, AppError) and not error.retryable:
                    raise
                wait = self._backoff.next_s(getattr(error, "retry_after_s", None))
                _log.warning("batch refused, trying again", error=str(error), wait_s=wait)
                await asyncio.sleep(wait)
            else:
                self._backoff.reset()
                return

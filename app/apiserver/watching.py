"""GET with ``watch=true``: how long a watch lives, where it starts and what ends it.

It starts from a number, or with the present state as ADDED events. It ends when the client goes, its time is up or the
server stops; a number that is too old ends it with an ERROR event that carries 410. Bookmarks tell a client that asked
for them how far it is (KEP-956), and with sendInitialEvents that the present state is complete (KEP-3157).

The storage's iterator is only ever cancelled while it waits in memory, and always closed.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog
from starlette.types import Receive, Scope, Send

from app.apiserver.context import RequestContext
from app.apiserver.errors import TooFarAhead, status_of
from app.apiserver.lines import Lines, error_line
from app.apiserver.options import ListOptions
from app.apiserver.reading import presenter
from app.apiserver.selectors import matcher
from app.apiserver.storage import Listing
from app.errors import AppError

_DEFAULT_TIMEOUT_S = 1800
_INITIAL_END = {"k8s.io/initial-events-end": "true"}
_CHUNK = 250

_log = structlog.get_logger(__name__)


class WatchStream:
    """An ASGI response. Make it with `open_watch`, which refuses what can be refused before the stream begins."""

    def __init__(
        self, context: RequestContext, options: ListOptions, lines: Lines, start: Listing | None
    ) -> None:
        self._context = context
        self._options = options
        self._lines = lines
        self._start = start
        self._bookmarked_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send(_opening(self._lines.media))
        ends = (
            asyncio.create_task(self._pump(send)),
            asyncio.create_task(_disconnected(receive)),
            asyncio.create_task(self._context.server.stopping.wait()),
        )
        try:
            await asyncio.wait(
                ends,
                timeout=self._options.timeout_s or _DEFAULT_TIMEOUT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for task in ends:
                task.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        await send({"type": "http.response.body", "body": b""})

    async def _pump(self, send: Send) -> None:
        try:
            async with aclosing(self._told()) as told:
                async for data in told:
                    if data:
                        await _send(send, data)
        except OSError:
            return
        except AppError as error:
            await _send(send, error_line(status_of(error)))
        except Exception:  # noqa: BLE001 (the last resort: no traceback leaves)
            _log.exception("watch failed", request_id=self._context.request_id)
            failure = AppError(f"the watch failed; request id {self._context.request_id}")
            await _send(send, error_line(status_of(failure)))

    async def _told(self) -> AsyncGenerator[bytes, None]:
        since = int(self._options.version or 0)
        if self._start is not None:
            since = self._start.resource_version
            async for data in self._initial(self._start):
                yield data
        context = self._context
        storage = context.server.storage
        watch = storage.watch(context.kind, context.target.namespace, since)
        async with aclosing(watch) as batches:
            async for batch in batches:
                for first in range(0, len(batch.events), _CHUNK):
                    yield self._lines.of(batch.events[first : first + _CHUNK])
                yield self._bookmark(batch.resource_version)

    async def _initial(self, start: Listing) -> AsyncGenerator[bytes, None]:
        if self._options.send_initial is False:
            return
        for first in range(0, len(start.items), _CHUNK):
            yield self._lines.added(start.items[first : first + _CHUNK])
            await asyncio.sleep(0)
        if self._options.send_initial:
            yield self._lines.bookmark(start.resource_version, _INITIAL_END)

    def _bookmark(self, number: int) -> bytes:
        if not self._options.bookmarks:
            return b""
        now = asyncio.get_running_loop().time()
        if now - self._bookmarked_at < self._context.server.bookmark_every_s:
            return b""
        first, self._bookmarked_at = not self._bookmarked_at, now
        return b"" if first else self._lines.bookmark(number)


async def open_watch(context: RequestContext, options: ListOptions) -> WatchStream:
    shown = presenter(context, collection=False)
    fields = options.fields
    if context.target.name:
        fields = ",".join(filter(None, (fields, f"metadata.name={context.target.name}")))
    matches = matcher(context.kind, options.labels, fields)
    start = None
    if options.send_initial or options.version in ("", "0"):
        start = await context.server.storage.list(context.kind, context.target.namespace)
        if int(options.version or 0) > start.resource_version:
            raise TooFarAhead(
                f"Too large resource version: {options.version}, current: {start.resource_version}"
            )
    return WatchStream(context, options, Lines(shown, matches, context.server.watch_lines), start)


def _opening(media: str) -> dict[str, object]:
    return {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", media.encode()), (b"cache-control", b"no-cache, private")],
    }


async def _send(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

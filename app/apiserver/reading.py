"""GET: one object, or a list with selectors, pages and the three forms.

A list is always the newest committed state, so every resourceVersion that a client may ask for "not older than" is
met, or is from the future and told so. A page token holds the number of the first page and the last key seen. Later
pages show newer objects under the first page's number: whoever then watches from that number is told every change
since, so nothing is lost. When the changes since that number are no longer kept, the token has expired (410).
"""

import asyncio
import base64
import binascii
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence

import orjson
from starlette.responses import Response, StreamingResponse

from app.apiserver.accept import wish
from app.apiserver.context import RequestContext
from app.apiserver.encoding import encode, json_response
from app.apiserver.errors import TooFarAhead, not_found
from app.apiserver.forms import Presenter
from app.apiserver.options import ListOptions
from app.apiserver.selectors import Matches, matcher
from app.apiserver.storage import Listing
from app.core.manifests import Manifest
from app.errors import BadRequest, Gone

_CHUNK = 250  # objects encoded between two turns of the event loop
_LOOKED_AT = 2500  # and objects looked at


def presenter(context: RequestContext, *, collection: bool) -> Presenter:
    query = context.request.query_params
    partial = "PartialObjectMetadataList" if collection else "PartialObjectMetadata"
    include = query.get("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise BadRequest(f"includeObject must be None, Metadata or Object, not {include[:40]!r}")
    return Presenter(
        served=context.served,
        wish=wish(context.request.headers.get("accept"), ("Table", partial)),
        now=context.now,
        include=include,
    )


async def read_one(context: RequestContext) -> Response:
    shown = presenter(context, collection=False)
    name = context.target.name or ""
    found = await context.server.storage.get(context.kind, context.target.namespace, name)
    if found is None:
        raise not_found(context.kind, name)
    return json_response(shown.one(found), media=shown.wish.media)


async def read_list(context: RequestContext, options: ListOptions) -> Response:
    shown = presenter(context, collection=True)
    listing = await context.server.storage.list(context.kind, context.target.namespace)
    version = _check_version(options, listing)
    items, start = listing.items, 0
    if options.token:
        version, last = _read_token(options.token, listing)
        start = bisect_right(items, last, key=place)
    matches = matcher(context.kind, options.labels, options.fields)
    page, rest = await _page(items, start, matches, options.limit)
    metadata: Manifest = {"resourceVersion": str(version)}
    if rest is not None:
        metadata["continue"] = _write_token(version, place(page[-1]))
        if matches is None:
            metadata["remainingItemCount"] = rest
    return _list_response(shown, page, metadata)


def place(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return (metadata.get("namespace", ""), metadata["name"])


async def _page(
    items: Sequence[Manifest], start: int, matches: Matches | None, limit: int
) -> tuple[Sequence[Manifest], int | None]:
    """The page, and how many objects at most follow it (None: nothing follows)."""
    if matches is None:
        stop = start + limit if limit else len(items)
        return items[start:stop], (len(items) - stop if stop < len(items) else None)
    page: list[Manifest] = []
    for index in range(start, len(items)):
        if index % _LOOKED_AT == 0:
            await asyncio.sleep(0)
        if matches(items[index]):
            if limit and len(page) == limit:
                return page, len(items) - index
            page.append(items[index])
    return page, None


def _check_version(options: ListOptions, listing: Listing) -> int:
    current = listing.resource_version
    asked = int(options.version or 0)
    if options.token:
        if options.version not in ("", "0"):
            raise BadRequest("specifying resourceVersion is not allowed when using continue")
        return current
    if asked > current:
        raise TooFarAhead(f"Too large resource version: {asked}, current: {current}")
    if options.match == "Exact" and asked != current:
        raise Gone(f"The provided resource version {asked} is not available (current: {current})")
    return current


def _write_token(version: int, last: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(encode({"v": version, "last": last})).decode().rstrip("=")


def _read_token(token: str, listing: Listing) -> tuple[int, tuple[str, str]]:
    try:
        told = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, (namespace, name) = int(told["v"]), map(str, told["last"])
    except (binascii.Error, ValueError, TypeError, KeyError):
        raise BadRequest("continue key is not valid") from None
    if version < listing.oldest or version > listing.resource_version:
        raise Gone(
            "The provided continue parameter is too old to display a consistent list result. "
            "You must start a new list without the continue parameter."
        )
    return version, (namespace, name)


def _list_response(shown: Presenter, page: Sequence[Manifest], metadata: Manifest) -> Response:
    if shown.wish.form == "Table":
        head = {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": shown.columns(),
        }
        field, show = "rows", shown.row
    else:
        head = {**shown.list_head(), "metadata": metadata}
        field, show = "items", shown.entry
    if len(page) <= _CHUNK:
        return json_response({**head, field: [show(one) for one in page]}, media=shown.wish.media)
    return StreamingResponse(_stream(head, field, page, show), media_type=shown.wish.media)


async def _stream(
    head: Manifest,
    field: str,
    page: Sequence[Manifest],
    show: Callable[[Manifest], Manifest],
) -> AsyncIterator[bytes]:
    """A long list in pieces, so that encoding it never holds the loop for long."""
    opening = encode({**head, field: []})
    yield opening[:-2]
    for start in range(0, len(page), _CHUNK):
        piece = encode([show(one) for one in page[start : start + _CHUNK]])[1:-1]
        yield (b"," if start else b"") + piece
        await asyncio.sleep(0)
    yield b"]}"

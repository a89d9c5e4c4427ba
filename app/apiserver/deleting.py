"""DELETE of one object or of a selected collection.

DeleteOptions may come in the body or in the query string. An object that finalizers hold is answered as it is now; one
that is gone is answered with a success Status that carries its uid. A collection is deleted object by object: each is
a change of its own, and one that meanwhile went by itself is no failure.
"""

from dataclasses import replace

from starlette.responses import Response

from app.apiserver.changes import Deletion, Edit, deleted, parse_deletion
from app.apiserver.context import RequestContext
from app.apiserver.encoding import json_response
from app.apiserver.errors import success
from app.apiserver.incoming import read_value
from app.apiserver.options import list_options, parse_dry_run
from app.apiserver.reading import presenter
from app.apiserver.selectors import matcher
from app.core.manifests import Manifest
from app.errors import BadRequest, NotFound


async def delete_one(context: RequestContext) -> Response:
    deletion = await _read(context)
    name = context.target.name or ""
    removed, last = await _delete(context, context.target.namespace, name, deletion)
    if removed or last is None:
        uid = last["metadata"].get("uid", "") if last else ""
        return json_response(success(context.kind, name, uid))
    shown = presenter(context, collection=False)
    return json_response(shown.one(last), media=shown.wish.media)


async def delete_collection(context: RequestContext) -> Response:
    deletion = await _read(context)
    options = list_options(context.request.query_params)
    matches = matcher(context.kind, options.labels, options.fields)
    listing = await context.server.storage.list(context.kind, context.target.namespace)
    shown = presenter(context, collection=True)
    gone: list[Manifest] = []
    for item in listing.items:
        if matches is not None and not matches(item):
            continue
        metadata = item["metadata"]
        try:
            _, last = await _delete(context, metadata.get("namespace"), metadata["name"], deletion)
        except NotFound:
            continue
        gone.append(item if last is None else last)
    version = {"resourceVersion": str(listing.resource_version)}
    items = [shown.entry(one) for one in gone]
    return json_response({**shown.list_head(), "metadata": version, "items": items})


async def _delete(
    context: RequestContext, namespace: str | None, name: str, deletion: Deletion
) -> tuple[bool, Manifest | None]:
    """Whether it is removed, and how it is or last was."""
    edit = Edit(kind=context.kind, name=name, now=context.now)
    removed: list[bool] = []

    def change(old: Manifest | None) -> Manifest | None:
        new = deleted(edit, old, deletion)
        removed[:] = [new is None]
        return new

    last = await context.server.storage.write(
        context.kind, namespace, name, change, user=context.user, dry_run=deletion.dry_run
    )
    return removed == [True], last


async def _read(context: RequestContext) -> Deletion:
    body = (await read_value(context)).value
    if body is not None and not isinstance(body, dict):
        raise BadRequest("the body of a deletion must be DeleteOptions")
    query = context.request.query_params
    told = dict(body or {})
    if "propagationPolicy" in query:
        told.setdefault("propagationPolicy", query["propagationPolicy"])
    deletion = parse_deletion(told)
    in_body = told.get("dryRun") or []
    if not isinstance(in_body, list):
        raise BadRequest("dryRun must be a list")
    dry_run = parse_dry_run([*map(str, in_body), *query.getlist("dryRun")])
    return replace(deletion, dry_run=dry_run)

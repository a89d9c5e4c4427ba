"""POST, PUT and PATCH: from a request to one atomic change of one object, and back.

Each verb reads its body and options, makes a pure `change` for the storage out of the rules in `changes`, and shows
what was stored. The change may run more than once and gets the object as it is then, so nothing here works with an
object read earlier.
"""

from collections.abc import Callable
from typing import Any, Literal

from starlette.responses import Response

from app.apiserver.applying import Apply, readable
from app.apiserver.bodies import Body, parse_json, parse_yaml, read_body
from app.apiserver.changes import Edit, Track, check_update, created, updated
from app.apiserver.context import RequestContext
from app.apiserver.encoding import copy, json_response
from app.apiserver.errors import already_exists, conflict, not_found
from app.apiserver.incoming import checked, media_type, read_value
from app.apiserver.metadata import timestamp
from app.apiserver.options import WriteOptions, refused, write_options
from app.apiserver.ownership import Actor, track_update
from app.apiserver.patches import check_operations, json_patch, merge_patch
from app.apiserver.reading import presenter
from app.apiserver.storage import Change
from app.core.manifests import Manifest
from app.errors import AlreadyExists, BadRequest, UnsupportedMediaType

_NAME_TRIES = 8
_PREFIX_LIMIT = 248  # leaves room for the five characters that are added
Patch = Callable[[Manifest], Manifest]


async def create(context: RequestContext) -> Response:
    options = _options(context)
    manifest = checked(context, options, await read_value(context))
    prefix = manifest["metadata"].get("generateName", "")
    if manifest["metadata"].get("name") or not prefix:
        return await _create_named(context, options, manifest)
    for _ in range(_NAME_TRIES):
        name = prefix[:_PREFIX_LIMIT] + context.server.new_suffix()
        try:
            return await _create_named(context, options, _named(manifest, name))
        except AlreadyExists:
            continue
    raise AlreadyExists(f"no free name was found for {prefix!r}; try again")


def _named(manifest: Manifest, name: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}}


async def _create_named(
    context: RequestContext, options: WriteOptions, manifest: Manifest
) -> Response:
    name = manifest["metadata"].get("name", "")
    stored = context.served.to_storage(manifest)
    uid = context.server.new_uid()
    edit = _edit(context, name, _update_tracker(context, options))

    def change(old: Manifest | None) -> Manifest:
        if old is not None:
            raise already_exists(context.kind, name)
        return created(edit, copy(stored), uid)

    return await _write(context, options, name, change, status=201)


async def replace(context: RequestContext) -> Response:
    options = _options(context)
    manifest = checked(context, options, await read_value(context))
    name = context.target.name or ""
    stored = context.served.to_storage(manifest)
    edit = _edit(context, name, _update_tracker(context, options))

    def change(old: Manifest | None) -> Manifest | None:
        return updated(edit, check_update(edit, old, stored), copy(stored))

    return await _write(context, options, name, change)


async def patch(context: RequestContext) -> Response:
    options = _options(context)
    match media_type(context):
        case "application/apply-patch+yaml":
            return await _apply(context, options)
        case "application/merge-patch+json":
            body = parse_json(await read_body(context.request))
            made = _merge(body.value)
        case "application/json-patch+json":
            body = parse_json(await read_body(context.request))
            made = _json(body.value)
        case _:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            )
    if options.force:
        raise refused("force", "true", "may not be specified for non-apply patch")
    return await _patch(context, options, made, body.duplicates)


def _merge(body: Any) -> Patch:
    if not isinstance(body, dict):
        raise BadRequest("a merge patch is an object")
    return lambda view: copy(merge_patch(view, body))


def _json(body: Any) -> Patch:
    operations = check_operations(body)
    return lambda view: json_patch(view, operations)


async def _patch(
    context: RequestContext, options: WriteOptions, made: Patch, duplicates: list[str]
) -> Response:
    name = context.target.name or ""
    edit = _edit(context, name, _update_tracker(context, options))

    def change(old: Manifest | None) -> Manifest | None:
        if old is None:
            raise not_found(context.kind, name)
        patched = made(context.served.from_storage(old))
        sound = checked(context, options, Body(patched, duplicates))
        proposed = context.served.to_storage(sound)
        return updated(edit, old, proposed)

    return await _write(context, options, name, change)


async def _apply(context: RequestContext, options: WriteOptions) -> Response:
    config = checked(context, options, parse_yaml(await read_body(context.request)))
    if not options.field_manager:
        raise refused("fieldManager", "", "is required for apply patch")
    if config["metadata"].get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    name = context.target.name or ""
    may_create = await _authorize_creation(context, name)
    apply = Apply(
        registry=context.server.registry,
        served=context.served,
        actor=_actor(context, options, "Apply"),
        applied=readable(config, context.served, context.target.subresource),
        force=options.force,
    )
    return await _write_applied(context, options, apply, config, may_create=may_create)


async def _authorize_creation(context: RequestContext, name: str) -> bool:
    """Applying to nothing creates, and that is another right; it is asked for only then."""
    if await context.server.storage.get(context.kind, context.target.namespace, name) is not None:
        return False
    if context.target.subresource:
        raise not_found(context.kind, name)
    await context.authorize("create")
    return True


async def _write_applied(
    context: RequestContext,
    options: WriteOptions,
    apply: Apply,
    config: Manifest,
    *,
    may_create: bool,
) -> Response:
    name = context.target.name or ""
    uid = context.server.new_uid()
    place = {key: config["metadata"][key] for key in _IDENTITY if key in config["metadata"]}
    was_there: list[bool] = []

    def change(old: Manifest | None) -> Manifest | None:
        was_there[:] = [old is not None]
        if old is None and (config["metadata"].get("uid") or not may_create):
            raise conflict(context.kind, name, "the object was deleted; apply it anew")
        view = apply.merged(old)
        view = {**view, "metadata": {**view.get("metadata", {}), **place}}
        merged = context.served.to_storage(view)
        edit = _edit(context, name, lambda before, new: apply.tracked(before, merged, new))
        if old is None:
            return created(edit, copy(merged), uid)
        return updated(edit, old, copy(merged))

    return await _write(context, options, name, change, status=lambda: 200 if was_there[0] else 201)


_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


def _options(context: RequestContext) -> WriteOptions:
    return write_options(context.request.query_params, context.server.field_validation)


def _edit(context: RequestContext, name: str, track: Track) -> Edit:
    return Edit(
        kind=context.kind,
        name=name,
        now=context.now,
        subresource=context.target.subresource,
        track=track,
    )


def _update_tracker(context: RequestContext, options: WriteOptions) -> Track:
    actor = _actor(context, options, "Update")
    registry, served = context.server.registry, context.served
    return lambda old, new: track_update(registry, served, actor, old, new)


def _actor(
    context: RequestContext, options: WriteOptions, operation: Literal["Apply", "Update"]
) -> Actor:
    agent = context.request.headers.get("user-agent", "").partition("/")[0][:128]
    return Actor(
        manager=options.field_manager or agent or "unknown",
        operation=operation,
        api_version=context.served.api_version,
        subresource=context.target.subresource,
        time=timestamp(context.now),
    )


async def _write(
    context: RequestContext,
    options: WriteOptions,
    name: str,
    change: Change,
    *,
    status: int | Callable[[], int] = 200,
) -> Response:
    shown = presenter(context, collection=False)
    stored = await context.server.storage.write(
        context.kind,
        context.target.namespace,
        name,
        change,
        user=context.user,
        dry_run=options.dry_run,
    )
    if stored is None:
        raise not_found(context.kind, name)
    code = status if isinstance(status, int) else status()
    return json_response(shown.one(stored), status=code, media=shown.wish.media)

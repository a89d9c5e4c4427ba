"""Which verb does a request mean, and who carries it out?

A URL names a collection, an object or a subresource; method and place together make the verb that is authorised. What
is not there is a 404 and a wrong method a 405 that says which methods there are.
"""

from collections.abc import Awaitable, Callable, Mapping

from starlette.types import ASGIApp

from app.apiserver.context import RequestContext, Server
from app.apiserver.deleting import delete_collection, delete_one
from app.apiserver.errors import method_not_allowed
from app.apiserver.guard import Call
from app.apiserver.options import list_options
from app.apiserver.paths import Target, parse_path, unknown_path
from app.apiserver.reading import read_list, read_one
from app.apiserver.registry import Served
from app.apiserver.watching import open_watch
from app.apiserver.writing import create, patch, replace

Verb = tuple[str, Callable[[RequestContext], Awaitable[ASGIApp]]]

_ITEM: Mapping[str, Verb] = {
    "GET": ("get", read_one),
    "PUT": ("update", replace),
    "PATCH": ("patch", patch),
}


async def _list_or_watch(context: RequestContext) -> ASGIApp:
    options = list_options(context.request.query_params)
    if options.watch:
        await context.authorize("watch")
        return await open_watch(context, options)
    await context.authorize("list")
    return await read_list(context, options)


async def _get_or_watch(context: RequestContext) -> ASGIApp:
    options = list_options(context.request.query_params)
    if options.watch:
        await context.authorize("watch")
        return await open_watch(context, options)
    await context.authorize("get")
    return await read_one(context)


_EVERYWHERE: Mapping[str, Verb] = {"GET": ("", _list_or_watch)}
_COLLECTION: Mapping[str, Verb] = {
    **_EVERYWHERE,
    "POST": ("create", create),
    "DELETE": ("deletecollection", delete_collection),
}
_OBJECT: Mapping[str, Verb] = {
    **_ITEM,
    "GET": ("", _get_or_watch),
    "DELETE": ("delete", delete_one),
}


def _verbs(served: Served, target: Target) -> Mapping[str, Verb]:
    """What can be done at a place; nothing when there is no such place."""
    kind = served.kind
    if target.namespace is not None and not kind.namespaced:
        return {}
    if target.name is None:
        elsewhere = kind.namespaced and target.namespace is None
        return _EVERYWHERE if elsewhere else _COLLECTION
    if kind.namespaced and target.namespace is None:
        return {}
    if not target.subresource:
        return _OBJECT
    return _ITEM if target.subresource == "status" and kind.status else {}


async def serve_resource(server: Server, call: Call) -> ASGIApp:
    params = call.request.path_params
    target = parse_path(params.get("group", ""), params["version"], params["rest"])
    served = server.registry.find(target.group, target.version, target.plural)
    verbs = _verbs(served, target) if served else {}
    if served is None or not verbs:
        raise unknown_path()
    method = call.request.method
    if method not in verbs:
        raise method_not_allowed(list(verbs))
    verb, handle = verbs[method]
    context = RequestContext(
        server=server,
        request=call.request,
        request_id=call.request_id,
        user=call.user,
        served=served,
        target=target,
        now=server.clock(),
        warnings=call.warnings,
    )
    if verb:
        await context.authorize(verb)
    if served.conversion is not None and served.conversion.deprecated:
        context.warn(served.conversion.deprecated)
    return await handle(context)

"""What a client sent as an object, made fit for use: well-shaped, of the right kind, in the right place.

Field validation happens here, in the version that the client speaks. Fields that the schema does not know and keys
given twice are refused, warned about or passed over, as the client asked; unknown fields are never stored.
"""

from app.apiserver.bodies import Body, parse_json, parse_yaml, read_body
from app.apiserver.context import RequestContext
from app.apiserver.errors import invalid
from app.apiserver.metadata import check_shape, same_place
from app.apiserver.options import WriteOptions
from app.apiserver.shapes import drop_nulls, misshapen
from app.apiserver.unknown import prune_unknown
from app.core.manifests import Manifest
from app.errors import BadRequest, UnsupportedMediaType

_PARSERS = {
    "": parse_json,
    "application/json": parse_json,
    "application/yaml": parse_yaml,
    "application/x-yaml": parse_yaml,
}


def media_type(context: RequestContext) -> str:
    return context.request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_value(context: RequestContext) -> Body:
    """The body of a create, replace or delete; its value is None when it is empty."""
    media = media_type(context)
    body = await read_body(context.request)
    if not body.strip():
        return Body(None, [])
    if media not in _PARSERS:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml"
        )
    return _PARSERS[media](body)


def checked(context: RequestContext, options: WriteOptions, body: Body) -> Manifest:
    """The body's value is changed in place; it comes and goes in the version of the request."""
    manifest = check_shape(body.value)
    _check_type(context, manifest)
    same_place(manifest, context.kind, context.target.namespace, context.target.name)
    drop_nulls(manifest)
    unknown: list[str] = []
    if not context.kind.preserve_unknown:
        unknown = prune_unknown(manifest, context.served.schema)
    report(context, options, unknown, body.duplicates)
    faults = misshapen(manifest, context.served.schema)
    if faults:
        raise invalid(context.kind, str(manifest["metadata"].get("name", "")), faults)
    return manifest


def report(
    context: RequestContext, options: WriteOptions, unknown: list[str], duplicates: list[str]
) -> None:
    """Say what is wrong with the fields of a body, in the way the client asked for."""
    told = [f'unknown field "{path}"' for path in unknown]
    told += [f'duplicate field "{path}"' for path in duplicates]
    if not told or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        kind = context.kind.kind
        raise BadRequest(
            f'{kind} in version "{context.served.version}" cannot be handled as a {kind}: '
            f"strict decoding error: {', '.join(told)}"
        )
    for text in told:
        context.warn(text)


def _check_type(context: RequestContext, manifest: Manifest) -> None:
    served = context.served
    for name, wanted in (("apiVersion", served.api_version), ("kind", served.kind.kind)):
        given = manifest.get(name)
        if given is None:
            raise BadRequest(f"Object '{name}' is missing in the body")
        if given != wanted:
            what = "API version" if name == "apiVersion" else "kind"
            raise BadRequest(
                f"the {what} in the data ({str(given)[:200]}) does not match "
                f"the expected {what} ({wanted})"
            )

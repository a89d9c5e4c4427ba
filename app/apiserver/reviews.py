"""``kubectl auth can-i`` and ``kubectl auth whoami``: a user asks about itself.

kubectl sends the question as protobuf, so the few fields of a SelfSubjectAccessReview are decoded by hand; JSON is
understood too. The answer is JSON. Nothing is stored.
"""

from collections.abc import Iterator

from starlette.responses import Response

from app.apiserver.bodies import parse_json, read_body
from app.apiserver.context import Attributes, Server
from app.apiserver.encoding import json_response
from app.apiserver.errors import method_not_allowed
from app.apiserver.guard import Call
from app.apiserver.kinds import Kind
from app.apiserver.paths import unknown_path
from app.core.manifests import Manifest
from app.errors import BadRequest, Forbidden, NotFound

_MAGIC = b"k8s\x00"
_LIMIT = 64 * 1024
_RESOURCE_FIELDS = {
    1: "namespace",
    2: "verb",
    3: "group",
    4: "version",
    5: "resource",
    6: "subresource",
    7: "name",
}
_PATH_FIELDS = {1: "path", 2: "verb"}


async def review_access(server: Server, call: Call) -> Response:
    if call.request.method != "POST":
        raise method_not_allowed(["POST"])
    spec = _read(await read_body(call.request, _LIMIT))
    status: Manifest = {"allowed": True}
    try:
        await server.authorize(call.user, _attributes(server, spec))
    except (Forbidden, NotFound) as error:
        status = {"allowed": False, "reason": error.message}
    answer = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": status,
    }
    return json_response(answer, status=201)


async def review_self(server: Server, call: Call) -> Response:  # noqa: ARG001 (the shape of a handler)
    if call.request.method != "POST":
        raise method_not_allowed(["POST"])
    user: Manifest = {"username": call.user.name, "groups": list(call.user.groups)}
    if call.user.uid:
        user["uid"] = call.user.uid
    answer = {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "status": {"userInfo": user},
    }
    return json_response(answer, status=201)


def _attributes(server: Server, spec: Manifest) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if isinstance(path, dict):
        return Attributes(verb=str(path.get("verb", "")), path=str(path.get("path", "")))
    asked = spec.get("resourceAttributes")
    if not isinstance(asked, dict):
        raise BadRequest("a review needs resourceAttributes or nonResourceAttributes")
    return Attributes(
        verb=str(asked.get("verb", "")),
        kind=_find(server, str(asked.get("group", "")), str(asked.get("resource", ""))),
        subresource=str(asked.get("subresource", "")),
        namespace=str(asked.get("namespace", "")) or None,
        name=str(asked.get("name", "")) or None,
    )


def _find(server: Server, group: str, resource: str) -> Kind:
    known = server.registry.groups.get(group)
    for served in known.versions.values() if known else ():
        for one in served:
            if one.kind.plural == resource:
                return one.kind
    raise unknown_path()


def _read(body: bytes) -> Manifest:
    if not body.startswith(_MAGIC):
        spec = parse_json(body).value
        spec = spec.get("spec") if isinstance(spec, dict) else None
        return spec if isinstance(spec, dict) else {}
    raw = _last(body[len(_MAGIC) :], 2)  # runtime.Unknown: the object's own bytes
    review = _last(raw, 2)
    for number, name, fields in (
        (1, "resourceAttributes", _RESOURCE_FIELDS),
        (2, "nonResourceAttributes", _PATH_FIELDS),
    ):
        found = dict(_messages(review)).get(number)
        if found is not None:
            told = {fields[key]: value.decode() for key, value in _messages(found) if key in fields}
            return {name: {key: value for key, value in told.items() if value}}
    return {}


def _last(message: bytes, number: int) -> bytes:
    return dict(_messages(message)).get(number, b"")


def _messages(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a protobuf message; numbers are passed over, other types refused."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        if tag & 7 == 0:
            _, at = _number(message, at)
            continue
        if tag & 7 != 2:
            raise BadRequest("the protobuf body cannot be read")
        size, at = _number(message, at)
        if at + size > len(message):
            raise BadRequest("the protobuf body ends too early")
        yield tag >> 3, message[at : at + size]
        at += size


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise BadRequest("the protobuf body cannot be read")

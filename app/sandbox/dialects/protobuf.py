"""Which namespace does a protobuf body ask for?

``kubectl create namespace`` sends protobuf and nothing else. Only its metadata (name, labels, annotations) is read;
other kinds are refused by the API server, which reads JSON and YAML.
"""

from collections.abc import Iterator

from app.core.manifests import Manifest
from app.errors import BadRequest

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_RAW, _METADATA, _NAME, _LABELS, _ANNOTATIONS = 2, 1, 1, 11, 12


def read_namespace(body: bytes) -> Manifest:
    if not body.startswith(_MAGIC):
        raise BadRequest("the protobuf body cannot be read")
    raw = _first(body[len(_MAGIC) :], _RAW)
    fields = list(_fields(_first(raw, _METADATA)))
    metadata: Manifest = {"name": dict(fields).get(_NAME, b"").decode()}
    for number, name in ((_LABELS, "labels"), (_ANNOTATIONS, "annotations")):
        entries = [dict(_fields(entry)) for found, entry in fields if found == number]
        if entries:
            metadata[name] = {one.get(1, b"").decode(): one.get(2, b"").decode() for one in entries}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _first(message: bytes, number: int) -> bytes:
    return next((value for found, value in _fields(message) if found == number), b"")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the length-delimited fields; numbers are passed over."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        if tag & 7 == 0:
            _, at = _number(message, at)
            continue
        if tag & 7 != 2:
            raise BadRequest("the protobuf body cannot be read")
        size, at = _number(message, at)
        yield tag >> 3, message[at : at + size]
        at += size


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(message):
            break
        byte, at = message[at], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise BadRequest("the protobuf body cannot be read")

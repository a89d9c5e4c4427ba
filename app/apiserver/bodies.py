"""From the bytes of a request to a value that is safe to handle.

Bytes are counted as they arrive, so a huge body is refused without being held. A body may be JSON or YAML; either way
duplicate keys are marked, nesting is at most 64 deep, integers fit 64 bits, numbers are finite and strings are storable
text (no NUL, no lone surrogates). YAML has no anchors, aliases or tags, and a smaller limit, since parsing it is slow.
"""

import json
from math import isfinite
from typing import Any, NamedTuple

from starlette.requests import Request

from app.apiserver import yaml
from app.apiserver.duplicates import Maps
from app.errors import BadRequest, TooLarge

MAX_BODY_BYTES = 3 * 1024 * 1024
MAX_YAML_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_KEYS = 10_000
_INT64 = 2**63


class Body(NamedTuple):
    """`duplicates` are the paths of keys given twice."""

    value: Any
    duplicates: list[str]


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {limit} bytes")


def parse_json(body: bytes) -> Body:
    maps = Maps()
    try:
        value = json.loads(
            _text(body),
            object_pairs_hook=maps.build,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from None
    check_value(value)
    return Body(value, maps.duplicates(value))


def parse_yaml(body: bytes) -> Body:
    """JSON too, being YAML: that is what most clients send under the name of YAML, and it has the larger limit."""
    if body.lstrip()[:1] == b"{":
        try:
            return parse_json(body)
        except BadRequest:
            if len(body) > MAX_YAML_BYTES:
                raise
    if len(body) > MAX_YAML_BYTES:
        raise _too_large(MAX_YAML_BYTES)
    maps = Maps()
    value = yaml.load(_text(body), MAX_DEPTH, maps)
    check_value(value)
    return Body(value, maps.duplicates(value))


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise BadRequest("the body is not UTF-8 text") from None


def _integer(text: str) -> int:
    if len(text) > 20:
        raise BadRequest(f"the number {text[:20]}... has too many digits")
    return int(text)


def _float(text: str) -> float:
    return float(text) if len(text) <= 400 else float("inf")


def _constant(text: str) -> float:
    raise BadRequest(f"{text} is not a number that JSON knows")


def _too_deep() -> BadRequest:
    return BadRequest(f"the body is nested more than {MAX_DEPTH} levels deep")


def check_value(value: Any) -> None:
    """Refuse what cannot be stored or sent; a loop, not recursion, since the depth is not trusted yet."""
    keys = 0
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                keys += len(node)
                below.extend(node)
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
            else:
                _check_scalar(node)
        if keys > MAX_KEYS:
            raise BadRequest(f"the body has more than {MAX_KEYS} keys")
        if not below:
            return
        level = below
    raise _too_deep()


def _check_scalar(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value or not (value.isascii() or _is_text(value)):
            raise BadRequest("a string holds a NUL character or half of a surrogate pair")
    elif isinstance(value, float):
        if not isfinite(value):
            raise BadRequest("a number is too large or not a number")
    elif isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise BadRequest(f"the number {value} does not fit 64 bits")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

"""What a patch makes of an object: merge patch (RFC 7386) and JSON patch (RFC 6902).

Both answer a new object and leave the old one alone. A JSON patch has a bounded number of operations, and a bounded
result: ``copy`` could otherwise double an object a few dozen times.
"""

from typing import Any

import jsonpatch
from jsonpointer import JsonPointerException

from app.apiserver.bodies import MAX_BODY_BYTES, MAX_DEPTH, check_value
from app.apiserver.encoding import copy, encode
from app.core.manifests import Manifest
from app.errors import BadRequest, FieldError, Invalid, TooLarge

MAX_OPERATIONS = 1000
MAX_COPIES = 32


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2. Unchanged parts are shared with `target`."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def check_operations(operations: Any) -> list[dict[str, Any]]:
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise BadRequest("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise TooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    if sum(operation.get("op") == "copy" for operation in operations) > MAX_COPIES:
        raise TooLarge(f"a JSON patch may copy at most {MAX_COPIES} times")
    for operation in operations:
        if not isinstance(operation.get("path"), str) or not isinstance(operation.get("op"), str):
            raise BadRequest("a JSON patch operation needs op and path")
        if operation["path"].count("/") > MAX_DEPTH:
            raise BadRequest(f"a JSON patch path is more than {MAX_DEPTH} levels deep")
    return operations


def json_patch(target: Manifest, operations: list[dict[str, Any]]) -> Manifest:
    document: Any = copy(target)
    try:
        for operation in operations:
            document = jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
            if operation["op"] == "copy":
                _check_size(document)
        _check_size(document)
    except (jsonpatch.JsonPatchException, JsonPointerException, RecursionError) as error:
        raise _failed(error) from None
    except (TypeError, KeyError, ValueError, AttributeError) as error:  # a path through a scalar
        raise _failed(error) from None
    check_value(document)
    if not isinstance(document, dict):
        raise BadRequest("the patch leaves no object")
    return document


def _check_size(document: Any) -> None:
    if len(encode(document)) > MAX_BODY_BYTES:
        raise TooLarge(f"the patched object is larger than {MAX_BODY_BYTES} bytes")


def _failed(error: Exception) -> Invalid:
    told = f"the JSON patch cannot be applied: {str(error)[:200]}"
    return Invalid(told, [FieldError("patch", told)])

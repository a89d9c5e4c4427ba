"""How every failure looks to a client of the Kubernetes face: a ``Status`` object, never a traceback.

The HTTP status and the reason come from the error's class; `details` carries what kubectl prints from: name, group,
kind, and one cause a faulty field. The constructors word the failures that every kind shares as a real apiserver
words them, because people and scripts match on those words.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from app.apiserver.encoding import json_response
from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from app.errors import (
    AlreadyExists,
    AppError,
    Conflict,
    FieldError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    Throttled,
    Unauthorized,
)

_RETRY_SOON_S = 1


class FieldConflict(Conflict):
    """Server-side apply would overwrite what others own: one (manager, field path) each."""

    def __init__(self, message: str, conflicts: Sequence[tuple[str, str]]) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class TooFarAhead(AppError):
    """A resourceVersion was asked for that we have not reached yet; it may come."""

    status = 504
    reason = "Timeout"
    retryable = True


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{kind.resource} "{name}" not found', details=_named(kind, name))


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    return AlreadyExists(f'{kind.resource} "{name}" already exists', details=_named(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}',
        details=_named(kind, name),
    )


def invalid(kind: Kind, name: str, causes: Sequence[FieldError]) -> Invalid:
    told = ", ".join(f"{cause.path}: {cause.message}" for cause in causes)
    if len(causes) > 1:
        told = f"[{told}]"
    owner = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Invalid(
        f'{owner} "{name}" is invalid: {told}',
        causes,
        details={"name": name, "group": kind.group, "kind": kind.kind},
    )


def about(error: Invalid, kind: Kind, name: str) -> Invalid:
    """The same refusal, naming the object, unless whoever raised it did already."""
    if error.details or not error.causes:
        return error
    return invalid(kind, name, error.causes)


def method_not_allowed(allowed: Sequence[str]) -> MethodNotAllowed:
    return MethodNotAllowed(
        "the server does not allow this method on the requested resource",
        details={"allow": ", ".join(sorted(allowed))},
    )


def _named(kind: Kind, name: str) -> Mapping[str, Any]:
    return {"name": name, "group": kind.group, "kind": kind.plural}


def status_of(error: AppError) -> Manifest:
    details: dict[str, Any] = {
        key: value
        for key, value in error.details.items()
        if key in ("name", "group", "kind", "uid") and value
    }
    causes = _causes(error)
    if causes:
        details["causes"] = causes
    wait = retry_after_s(error)
    if wait is not None:
        details["retryAfterSeconds"] = wait
    status: Manifest = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.status,
    }
    if details:
        status["details"] = details
    return status


def _causes(error: AppError) -> list[Manifest]:
    if isinstance(error, Invalid):
        return [
            {"reason": cause.reason, "message": cause.message, "field": cause.path}
            for cause in error.causes
        ]
    if isinstance(error, FieldConflict):
        return [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {manager}",
                "field": path,
            }
            for manager, path in error.conflicts
        ]
    return []


def retry_after_s(error: AppError) -> int | None:
    """What to tell a client that may try again, in whole seconds."""
    if isinstance(error, Throttled) and error.retry_after_s is not None:
        return max(1, math.ceil(error.retry_after_s))
    return _RETRY_SOON_S if error.retryable else None


def error_response(error: AppError) -> Response:
    headers: dict[str, str] = {}
    wait = retry_after_s(error)
    if wait is not None:
        headers["Retry-After"] = str(wait)
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = str(error.details.get("allow", ""))
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return json_response(status_of(error), status=error.status, headers=headers)


def success(kind: Kind, name: str, uid: str) -> Manifest:
    """What a deletion answers."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_named(kind, name), "uid": uid},
    }

"""Everything that Sluice raises on purpose.

The class says whose fault it is and whether trying again can help; the HTTP status of each lives in one place
(`status`) and both faces of the API render it. Foreign exceptions are translated once, at the edge that owns the
library (`store`, `kube`). A message is one sentence for the person who caused it: what was wrong, where, what would
be right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault in one field, as Kubernetes reports it in ``Status.details.causes``.

    `reason` is one of ``FieldValueInvalid``, ``FieldValueRequired``, ``FieldValueNotSupported``,
    ``FieldValueDuplicate``, ``FieldValueForbidden``, ``FieldValueTooLong``, ``FieldValueTypeInvalid``;
    `path` is written as in manifests: ``spec.resourceGroups[0].flavors[1].name``.
    """

    path: str
    message: str
    reason: str = "FieldValueInvalid"


class AppError(Exception):
    """Root of all errors raised on purpose. `reason` is Kubernetes' word for it in a ``Status``."""

    status: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = details or {}


class BadRequest(AppError):
    """The request itself cannot be read: malformed JSON or YAML, unknown fields, bad parameters."""

    status = 400
    reason = "BadRequest"


class Unauthorized(AppError):
    status = 401
    reason = "Unauthorized"


class Forbidden(AppError):
    status = 403
    reason = "Forbidden"


class NotFound(AppError):
    status = 404
    reason = "NotFound"


class MethodNotAllowed(AppError):
    status = 405
    reason = "MethodNotAllowed"


class NotAcceptable(AppError):
    status = 406
    reason = "NotAcceptable"


class Conflict(AppError):
    """The object moved meanwhile, or another field manager owns what was applied."""

    status = 409
    reason = "Conflict"


class AlreadyExists(AppError):
    status = 409
    reason = "AlreadyExists"


class Gone(AppError):
    """The asked-for resourceVersion is older than what is kept: list again."""

    status = 410
    reason = "Expired"


class TooLarge(AppError):
    status = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(AppError):
    status = 415
    reason = "UnsupportedMediaType"


class Invalid(AppError):
    """Understood and refused: `causes` names every faulty field, in the order of the manifest."""

    status = 422
    reason = "Invalid"

    def __init__(
        self,
        message: str,
        causes: Sequence[FieldError] = (),
        *,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, details=details)
        self.causes = tuple(causes)


class Throttled(AppError):
    """Asked to slow down; `retry_after_s` is the server's wish, if it named one."""

    status = 429
    reason = "TooManyRequests"
    retryable = True

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(AppError):
    """Something we depend on does not answer now; the same call may succeed later."""

    status = 503
    reason = "ServiceUnavailable"
    retryable = True


class LeaseLost(AppError):
    """Another process leads now: stop the loops; nothing of this round was written."""

    status = 503
    reason = "ServiceUnavailable"


class Misconfigured(AppError):
    """Start-up cannot go on until a person changes a setting, a file or the machine."""


class InvariantBroken(AssertionError):
    """Our own bug: the round is dropped, the data is not."""

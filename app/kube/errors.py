"""What went wrong in a call to a cluster, in our own words for errors?

Each class is one of `app.errors` (so the two faces of the API and every retry rule know it) and a `KubeError`, which
adds what the cluster said: HTTP code, Kubernetes' reason, details, and how long it asked us to wait. A call that timed
out, was cut or got a 5xx may still have been carried out: the caller looks before it tries again. A 409 means look and
decide again, never send again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from app import errors
from app.errors import AppError, FieldError

_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is known of a failed call; `code` is 0 when no answer came."""

    code: int
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    retry_after_s: float | None = None


class KubeError(AppError):
    def __init__(self, message: str, answer: Answer) -> None:
        AppError.__init__(self, message, details=answer.details)
        self.answer = answer
        self.retry_after_s = answer.retry_after_s
        self.causes = tuple(_causes(answer.details))


class KubeBadRequest(KubeError, errors.BadRequest):
    """Also every 4xx that has no class of its own: sending it again cannot help."""


class KubeUnauthorized(KubeError, errors.Unauthorized):
    pass


class KubeForbidden(KubeError, errors.Forbidden):
    pass


class KubeNotFound(KubeError, errors.NotFound):
    pass


class KubeConflict(KubeError, errors.Conflict):
    pass


class KubeAlreadyExists(KubeError, errors.AlreadyExists):
    pass


class KubeGone(KubeError, errors.Gone):
    pass


class KubeTooLarge(KubeError, errors.TooLarge):
    pass


class KubeInvalid(KubeError, errors.Invalid):
    pass


class KubeThrottled(KubeError, errors.Throttled):
    pass


class KubeUnavailable(KubeError, errors.Unavailable):
    """No answer, a 5xx, or something that is no Kubernetes answer at all. Whether the call took effect is unknown."""


_BY_CODE: Mapping[int, type[KubeError]] = {
    401: KubeUnauthorized,
    403: KubeForbidden,
    404: KubeNotFound,
    409: KubeConflict,
    410: KubeGone,
    413: KubeTooLarge,
    422: KubeInvalid,
    429: KubeThrottled,
}


def from_answer(code: int, headers: Mapping[str, str], body: bytes, call: str) -> KubeError:
    """Translate an HTTP answer that is not a success. `call` says what was asked, for the message."""
    status = _status_object(body)
    details = status.get("details") or {}
    answer = Answer(
        code=code,
        reason=str(status.get("reason") or ""),
        details=details if isinstance(details, dict) else {},
        retry_after_s=_retry_after(headers, details),
    )
    said = str(status.get("message") or _excerpt(body) or "no explanation")
    return _class_for(answer)(f"{call}: {said} (HTTP {code})", answer)


def from_status(status: Mapping[str, Any], call: str) -> KubeError:
    """Translate the ``Status`` object that a watch carries in an ERROR event."""
    code = status.get("code")
    return from_answer(code if isinstance(code, int) else 500, {}, orjson.dumps(status), call)


def unanswered(call: str, why: str) -> KubeUnavailable:
    return KubeUnavailable(f"{call}: {why}", Answer(code=0))


def not_kubernetes(call: str, code: int, content_type: str) -> KubeUnavailable:
    """A success that is no JSON: a load balancer or a captive portal answers in the cluster's place."""
    return KubeUnavailable(
        f"{call}: the answer is {content_type or 'of no type'}, not JSON (HTTP {code})",
        Answer(code=code),
    )


def _class_for(answer: Answer) -> type[KubeError]:
    if answer.reason == "AlreadyExists":
        return KubeAlreadyExists
    if answer.code >= 500 or answer.code < 400:
        return KubeUnavailable
    return _BY_CODE.get(answer.code, KubeBadRequest)


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _retry_after(headers: Mapping[str, str], details: Any) -> float | None:
    """Seconds; the date form of the header is not used by Kubernetes."""
    value = headers.get("Retry-After") or ""
    if value.isascii() and value.isdigit() and len(value) < 7:
        return float(value)
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else None


def _excerpt(body: bytes) -> str:
    """The start of a foreign answer on one line, so that a page of HTML does not become a message."""
    return " ".join(body[:_SHOWN].decode("utf-8", "replace").split())


def _causes(details: Mapping[str, Any]) -> list[FieldError]:
    causes = details.get("causes")
    return [
        FieldError(
            str(cause.get("field") or ""),
            str(cause.get("message") or ""),
            str(cause.get("reason") or "FieldValueInvalid"),
        )
        for cause in (causes if isinstance(causes, list) else ())
        if isinstance(cause, dict)
    ]

"""AdmissionReview in, AdmissionReview out: the envelope, apart from what is decided inside it.

Only ``admission.k8s.io/v1`` is spoken. Operations of a JSON patch are written by hand: generating them from two
objects would cost a thousand times more and guess at intent.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.core.manifests import Manifest
from app.errors import BadRequest, FieldError

Operation = dict[str, Any]

CHANGING = ("CREATE", "UPDATE")
"""Operations that leave an object behind; others are none of our business and are allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    uid: str
    operation: str
    group: str
    kind: str
    namespace: str
    object: Manifest
    old: Manifest | None


def read(body: Mapping[str, Any]) -> Review:
    """Raises BadRequest naming what is missing; an API server never sends such a thing."""
    request = body.get("request")
    if body.get("apiVersion") != "admission.k8s.io/v1" or not isinstance(request, Mapping):
        raise BadRequest("expected an AdmissionReview of admission.k8s.io/v1 with a request")
    uid, kind = request.get("uid"), request.get("kind")
    if not isinstance(uid, str) or not isinstance(kind, Mapping):
        raise BadRequest("request.uid and request.kind are required")
    operation, subject = str(request.get("operation", "")), _object(request, "object")
    if subject is None and operation in CHANGING:
        raise BadRequest("request.object is required")
    return Review(
        uid=uid,
        operation=operation,
        group=str(kind.get("group", "")),
        kind=str(kind.get("kind", "")),
        namespace=str(request.get("namespace", "")),
        object=subject or {"metadata": {}},
        old=_object(request, "oldObject"),
    )


def _object(request: Mapping[str, Any], field: str) -> Manifest | None:
    """An object, as far as it is looked at: its labels are text."""
    found = request.get(field)
    if found is None:
        return None
    metadata = found.get("metadata") if isinstance(found, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else ()
    if labels is not None and not _are_texts(labels):
        raise BadRequest(f"request.{field} is no Kubernetes object")
    return found  # type: ignore[no-any-return]


def _are_texts(labels: object) -> bool:
    return isinstance(labels, dict) and all(isinstance(value, str) for value in labels.values())


def allow(review: Review, patch: Sequence[Operation] = ()) -> Manifest:
    response: Manifest = {"uid": review.uid, "allowed": True}
    if patch:
        response |= {
            "patchType": "JSONPatch",
            "patch": base64.b64encode(orjson.dumps(patch)).decode(),
        }
    return _envelope(response)


def deny(review: Review, faults: Sequence[FieldError]) -> Manifest:
    """The API server prints the message behind the name of the webhook."""
    message = "; ".join(f"{fault.path}: {fault.message}" for fault in faults)
    causes = [{"field": f.path, "message": f.message, "reason": f.reason} for f in faults]
    status = {"code": 422, "reason": "Invalid", "message": message, "details": {"causes": causes}}
    return _envelope({"uid": review.uid, "allowed": False, "status": status})


def _envelope(response: Manifest) -> Manifest:
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def pointer(*tokens: str) -> str:
    """A JSON pointer (RFC 6901) to the member that `tokens` lead to."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)

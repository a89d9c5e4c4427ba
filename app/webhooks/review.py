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
    subject, old = request.get("object"), request.get("oldObject")
    return Review(
        uid=uid,
        operation=str(request.get("operation", "")),
        group=str(kind.get("group", "")),
        kind=str(kind.get("kind", "")),
        namespace=str(request.get("namespace", "")),
        object=subject if isinstance(subject, dict) else {},
        old=old if isinstance(old, dict) else None,
    )


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

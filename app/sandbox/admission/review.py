"""What is asked of an admission webhook, and what does its answer mean?

``AdmissionReview`` of admission.k8s.io/v1, both ways, as kube-apiserver writes and reads it. Pure.
"""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from app.apiserver.kinds import Kind
from app.apiserver.storage import User
from app.core.manifests import Manifest
from app.errors import AppError
from app.sandbox.requests import Operation, RequestInfo

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that admission looks at. `old` is what is stored now, `new` what would be; a deletion has no `new`."""

    kind: Kind
    namespace: str | None
    name: str
    operation: Operation
    old: Manifest | None
    new: Manifest | None
    user: User
    dry_run: bool
    info: RequestInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    allowed: bool
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    status: dict[str, Any] | None = None  # why not


class BadAnswer(Exception):
    """The webhook answered something that is no answer; counts as a failure to call it."""


class Denied(AppError):
    """The webhook said no. It chooses status and reason itself; 400 unless it does."""

    def __init__(self, hook: str, result: dict[str, Any] | None) -> None:
        result = result or {}
        why = result.get("message") or result.get("reason")
        by = f'admission webhook "{hook}" denied the request'
        super().__init__(f"{by}: {why}" if why else f"{by} without explanation")
        self.status = max(int(result.get("code") or 0), 400)  # type: ignore[misc]
        self.reason = str(result.get("reason") or "")  # type: ignore[misc]


def review(write: Write, uid: str) -> Manifest:
    kind = write.kind
    of_kind = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    of_resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    request: dict[str, Any] = {
        "uid": uid,
        "kind": of_kind,
        "resource": of_resource,
        "requestKind": of_kind,
        "requestResource": of_resource,
        "name": write.name,
        "operation": write.operation,
        "userInfo": _user_info(write.user),
        "object": write.new,
        "oldObject": write.old,
        "dryRun": write.dry_run,
        "options": _options(write),
    }
    if write.namespace is not None:
        request["namespace"] = write.namespace
    if write.info.subresource:
        request["subResource"] = request["requestSubResource"] = write.info.subresource
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def read_answer(body: bytes, uid: str, *, may_patch: bool) -> Answer:
    try:
        answer = json.loads(body)
        response = answer["response"]
        told = (answer.get("apiVersion"), answer.get("kind"), response.get("uid"))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadAnswer(f"webhook response is not an AdmissionReview: {error}") from error
    if told[:2] != ("admission.k8s.io/v1", "AdmissionReview"):
        raise BadAnswer(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
            f"got {told[0]}, Kind={told[1]}"
        )
    if told[2] != uid:
        raise BadAnswer(f'expected response.uid="{uid}", got "{told[2] or ""}"')
    return Answer(
        allowed=bool(response.get("allowed")),
        patch=_patch(response, may_patch=may_patch),
        warnings=tuple(response.get("warnings") or ()),
        status=response.get("status"),
    )


def _patch(response: dict[str, Any], *, may_patch: bool) -> tuple[dict[str, Any], ...]:
    if not response.get("patch"):
        return ()
    if not may_patch:
        raise BadAnswer("validating webhook may not return response.patch")
    if response.get("patchType") != "JSONPatch":
        raise BadAnswer(f"unknown response.patchType: {response.get('patchType')!r}")
    try:
        return tuple(json.loads(base64.b64decode(response["patch"], validate=True)))
    except (ValueError, TypeError, binascii.Error) as error:
        raise BadAnswer(f"response.patch is no JSON patch: {error}") from error


def _user_info(user: User) -> dict[str, Any]:
    info: dict[str, Any] = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra}
    return info


def _options(write: Write) -> dict[str, Any]:
    options: dict[str, Any] = {
        "kind": _OPTIONS[write.operation],
        "apiVersion": "meta.k8s.io/v1",
    }
    if write.info.field_manager:
        options["fieldManager"] = write.info.field_manager
    if write.dry_run:
        options["dryRun"] = ["All"]
    if write.operation == "DELETE" and write.info.delete.propagation:
        options["propagationPolicy"] = write.info.delete.propagation
    return options

"""AdmissionReviews as an API server sends them, and what their answers do to a job."""

import base64
import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jsonpatch
import orjson

from app.core.manifests import Manifest

QUEUE = "kueue.x-k8s.io/queue-name"
LIMIT = "kueue.x-k8s.io/max-exec-time-seconds"


def job(
    queue: str | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
    *,
    suspend: bool | None = None,
) -> Manifest:
    metadata: Manifest = {"name": "train", "namespace": "team-a"}
    told = {**labels, **({} if queue is None else {QUEUE: queue})}
    if told:
        metadata["labels"] = told
    spec: Manifest = {"template": {"spec": {"containers": []}}}
    if suspend is not None:
        spec["suspend"] = suspend
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def review(
    new: Any, old: Any = None, *, operation: str = "", dry_run: bool = False, **more: Any
) -> Manifest:
    request = {
        "uid": "705ab4f5",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
        "namespace": "team-a",
        "operation": operation or ("CREATE" if old is None else "UPDATE"),
        "userInfo": {"username": "eve", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": dry_run,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **more,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def operations(answer: Manifest) -> list[dict[str, Any]]:
    response = answer["response"]
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    found: list[dict[str, Any]] = orjson.loads(base64.b64decode(response["patch"]))
    return found


def patched(subject: Manifest, answer: Manifest) -> Manifest:
    """What the API server would go on with."""
    result: Manifest = jsonpatch.apply_patch(copy.deepcopy(subject), operations(answer))
    return result

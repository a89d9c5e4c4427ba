"""What does a pod look like that the Job controller creates?"""

from typing import Any

from app.apiserver.encoding import copy
from app.core.manifests import Manifest
from app.sandbox.batch import facts

_LONGEST_PREFIX = 58  # a name may have 63 characters, five of them random
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


def pod_for(job: Manifest, index: int | None) -> Manifest:
    """Return the pod to create; the server gives it its name."""
    template = copy(job["spec"]["template"])
    spec: dict[str, Any] = template["spec"]
    labels = dict(template["metadata"].get("labels") or {})
    annotations = dict(template["metadata"].get("annotations") or {})
    if index is not None:
        labels[facts.INDEX_ANNOTATION] = annotations[facts.INDEX_ANNOTATION] = str(index)
        spec["hostname"] = f"{job['metadata']['name']}-{index}"
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            _add_index_variable(container)
    metadata: dict[str, Any] = {
        "generateName": _prefix(job["metadata"]["name"], index),
        "namespace": job["metadata"]["namespace"],
        "labels": labels,
        "finalizers": [facts.TRACKING_FINALIZER],
        "ownerReferences": [_owner(job)],
    }
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _prefix(name: str, index: int | None) -> str:
    end = "-" if index is None else f"-{index}-"
    return name[: _LONGEST_PREFIX - len(end)] + end


def _owner(job: Manifest) -> Manifest:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _add_index_variable(container: dict[str, Any]) -> None:
    env = container.setdefault("env", [])
    if any(one["name"] == _INDEX_VARIABLE for one in env):
        return
    path = f"metadata.labels['{facts.INDEX_ANNOTATION}']"
    env.append(
        {
            "name": _INDEX_VARIABLE,
            "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}},
        }
    )

"""Do the fields that the simulated controllers read have the types that Kubernetes gives them?

kube-apiserver refuses a body that it cannot decode with a 400; the kinds here take any field, so what is relied on is
checked first. Paths may contain ``[]`` for every item of a list.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.core.manifests import Manifest
from app.errors import BadRequest

_NAMES: Mapping[type, str] = {
    int: "int32",
    str: "string",
    bool: "bool",
    dict: "object",
    list: "list",
}

POD_SPEC: Mapping[str, type] = {
    "containers": list,
    "containers[]": dict,
    "containers[].name": str,
    "containers[].image": str,
    "containers[].env": list,
    "containers[].env[]": dict,
    "containers[].env[].name": str,
    "containers[].resources": dict,
    "containers[].resources.limits": dict,
    "containers[].resources.requests": dict,
    "initContainers": list,
    "initContainers[]": dict,
    "initContainers[].resources": dict,
    "nodeSelector": dict,
    "nodeName": str,
    "affinity": dict,
    "affinity.nodeAffinity": dict,
    "tolerations": list,
    "tolerations[]": dict,
    "schedulingGates": list,
    "schedulingGates[]": dict,
    "schedulingGates[].name": str,
    "restartPolicy": str,
    "priorityClassName": str,
    "terminationGracePeriodSeconds": int,
}
POD: Mapping[str, type] = {"spec": dict, **{f"spec.{path}": one for path, one in POD_SPEC.items()}}
JOB: Mapping[str, type] = {
    "spec": dict,
    "spec.parallelism": int,
    "spec.completions": int,
    "spec.backoffLimit": int,
    "spec.activeDeadlineSeconds": int,
    "spec.ttlSecondsAfterFinished": int,
    "spec.suspend": bool,
    "spec.manualSelector": bool,
    "spec.completionMode": str,
    "spec.managedBy": str,
    "spec.selector": dict,
    "spec.selector.matchLabels": dict,
    "spec.template": dict,
    "spec.template.metadata": dict,
    "spec.template.metadata.labels": dict,
    "spec.template.metadata.annotations": dict,
    **{f"spec.template.{path}": one for path, one in POD.items()},
    "status": dict,
    "status.active": int,
    "status.ready": int,
    "status.succeeded": int,
    "status.failed": int,
    "status.terminating": int,
    "status.startTime": str,
    "status.completionTime": str,
    "status.conditions": list,
    "status.conditions[]": dict,
    "status.conditions[].type": str,
}


def check(manifest: Manifest, shapes: Mapping[str, type]) -> None:
    """Raise for the first field of another type; absent and null fields pass."""
    for path, wanted in shapes.items():
        for value in _values(manifest, path.replace("[]", ".[]").split(".")):
            if value is None or (isinstance(value, wanted) and _is_exact(value, wanted)):
                continue
            kind = manifest.get("kind", "object")
            raise BadRequest(
                f'{kind} in version "{manifest.get("apiVersion")}" cannot be handled as a {kind}: '
                f"field {path} must be of type {_NAMES[wanted]}"
            )


def _is_exact(value: Any, wanted: type) -> bool:
    """True is no number, though Python says so."""
    return wanted is not int or not isinstance(value, bool)


def _values(value: Any, steps: list[str]) -> Iterator[Any]:
    if not steps:
        yield value
    elif steps[0] == "[]":
        for item in value if isinstance(value, list) else ():
            yield from _values(item, steps[1:])
    elif isinstance(value, dict) and steps[0] in value:
        yield from _values(value[steps[0]], steps[1:])

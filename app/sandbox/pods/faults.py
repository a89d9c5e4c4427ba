"""What is wrong with the containers of a pod or a pod template?

Names and images are required, and a resource that cannot be overcommitted (every extended resource, such as GPUs) needs
a limit that equals its request. Wordings are kube-apiserver's.
"""

from collections.abc import Mapping
from typing import Any

from app.core.quantity import QuantityError, parse
from app.errors import FieldError
from app.sandbox.faulty_fields import invalid, required


def pod_faults(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    found = [] if spec.get("containers") else [required(f"{path}.containers")]
    for where in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(where) or ()):
            found += _container(container, f"{path}.{where}[{index}]")
    return found


def _container(container: Mapping[str, Any], path: str) -> list[FieldError]:
    found = [required(f"{path}.{name}") for name in ("name", "image") if not container.get(name)]
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    unreadable = [
        fault
        for kind, amounts in (("limits", limits), ("requests", requests))
        for fault in _amounts(amounts, f"{path}.resources.{kind}")
    ]
    return [*found, *(unreadable or _overcommitted(limits, requests, f"{path}.resources"))]


def _amounts(amounts: Mapping[str, Any], path: str) -> list[FieldError]:
    found = []
    for name, text in amounts.items():
        try:
            negative = parse(text).nanos < 0
        except QuantityError as error:
            found.append(invalid(f"{path}[{name}]", text, str(error)))
            continue
        if negative:
            found.append(invalid(f"{path}[{name}]", text, "must be greater than or equal to 0"))
    return found


def _overcommitted(
    limits: Mapping[str, Any], requests: Mapping[str, Any], path: str
) -> list[FieldError]:
    found = []
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if _is_extended(name):
                detail = "Limit must be set for non overcommitable resources"
                found.append(required(f"{path}.limits", detail))
        elif parse(request) > parse(limit):
            detail = f"must be less than or equal to {name} limit of {limit}"
            found.append(invalid(f"{path}.requests", str(request), detail))
        elif _is_extended(name) and parse(request) != parse(limit):
            detail = f"must be equal to {name} limit of {limit}"
            found.append(invalid(f"{path}.requests", str(request), detail))
    return found


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name

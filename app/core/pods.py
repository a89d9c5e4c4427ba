"""What does one pod of a template ask for, and where may it run?

Follows Kubernetes' own sum of a pod: containers and restartable (sidecar) init containers run together, ordinary init
containers one at a time beside the sidecars started before them, pod-level resources replace that sum where given,
overhead comes on top, and a missing request is the limit. Identical templates share one ``PodShape``, so a thousand
workloads of one kind cost one reading.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

from app.core import resources
from app.core.model import PodShape
from app.core.resources import Requests
from app.core.selectors import NodeAffinity, Requirement, Toleration

_EMPTY: Mapping[str, Any] = {}

#: The parts of a pod that decide where it may run; the rest cannot change a decision.
_PLACED_BY = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priority",
    "topologySpreadConstraints",
    "overhead",
    "resourceClaims",
    "resources",
)


def shape(template: Mapping[str, Any]) -> PodShape:
    """Read a pod template; raises ``QuantityError`` for a quantity that is none."""
    spec = template.get("spec") or _EMPTY
    return _shape(json.dumps(spec, sort_keys=True, separators=(",", ":")))


@lru_cache(maxsize=8192)
def _shape(text: str) -> PodShape:
    spec = json.loads(text)
    return PodShape(
        requests={name: max(0, value) for name, value in sorted(_pod_requests(spec).items())},
        node_selector=dict(sorted((spec.get("nodeSelector") or {}).items())),
        affinity=_required_affinity(spec),
        tolerations=tolerations(spec.get("tolerations")),
        digest=_digest(spec),
        fault=_fault(spec),
    )


def _pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    together = resources.total(*(_requests(one) for one in spec.get("containers") or ()))
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for one in spec.get("initContainers") or ():
        mine = _requests(one)
        if one.get("restartPolicy") == "Always":
            sidecars = resources.total(sidecars, mine)
            mine = {}
        peak = _largest(peak, resources.total(sidecars, mine))
    summed = _largest(resources.total(together, sidecars), peak)
    summed.update(_requests(spec))
    return resources.total(summed, _amounts(spec.get("overhead")))


def _requests(holder: Mapping[str, Any]) -> dict[str, int]:
    asked = holder.get("resources") or _EMPTY
    return _amounts({**(asked.get("limits") or {}), **(asked.get("requests") or {})})


def _amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    return {name: resources.amount(name, text) for name, text in (quantities or {}).items()}


def _largest(left: Requests, right: Requests) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in [*left, *right]}


def _fault(spec: Mapping[str, Any]) -> str | None:
    for one in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        asked = one.get("resources") or _EMPTY
        requests, limits = _amounts(asked.get("requests")), _amounts(asked.get("limits"))
        above = sorted(
            name for name in requests if requests[name] > limits.get(name, requests[name])
        )
        if above:
            return (
                f"container {one.get('name', '')!r} requests more {', '.join(above)} than its limit"
            )
    return None


def tolerations(items: Iterable[Mapping[str, Any]] | None) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            key=item.get("key") or "",
            operator=item.get("operator") or "Equal",
            value=item.get("value") or "",
            effect=item.get("effect") or "",
        )
        for item in items or ()
    )


def _required_affinity(spec: Mapping[str, Any]) -> NodeAffinity | None:
    node = (spec.get("affinity") or _EMPTY).get("nodeAffinity") or _EMPTY
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or _EMPTY
    terms = required.get("nodeSelectorTerms") or ()
    if not terms:
        return None
    return NodeAffinity(
        terms=tuple(
            requirements([*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())])
            for term in terms
        )
    )


def requirements(items: Iterable[Mapping[str, Any]] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(
            key=item["key"],
            operator=item["operator"],
            values=tuple(item.get("values") or ()),
        )
        for item in items or ()
    )


def _digest(spec: Mapping[str, Any]) -> str:
    containers = [
        [
            {"requests": sorted(_requests(one).items()), "ports": one.get("ports")}
            for one in spec.get(where) or ()
        ]
        for where in ("initContainers", "containers")
    ]
    told = {"containers": containers, **{name: spec.get(name) for name in _PLACED_BY}}
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

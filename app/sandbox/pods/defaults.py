"""What does kube-apiserver fill into a pod or a pod template that leaves something out?

Only the defaults that clients of Jobs and pods meet; probes, ports and volumes are left as they are. Functions fill in
place: they are given the writer's own copy.
"""

from functools import lru_cache
from typing import Any

from app.core.manifests import Manifest
from app.core.quantity import QuantityError, canonical

_CONTAINER_LISTS = ("initContainers", "containers")
_OPTIONAL = ("nodeSelector", "tolerations", "schedulingGates", "initContainers", "volumes")
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


def fill_pod_spec(spec: dict[str, Any]) -> None:
    """Fill the defaults that a pod and a pod template share."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    drop_empty(spec, _OPTIONAL)
    for container in _containers(spec):
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        _write_canonically(container.setdefault("resources", {}))
        container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image") or "")))


def fill_pod(pod: Manifest) -> None:
    """Fill the defaults of a pod proper: those of its spec, and requests from limits."""
    drop_empty(pod["metadata"])
    spec = pod.setdefault("spec", {})
    fill_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in _containers(spec):
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def drop_empty(holder: dict[str, Any], fields: tuple[str, ...] = _METADATA) -> None:
    """An empty list or map is the same as none, and none is what is stored."""
    for name in fields:
        if name in holder and not holder[name]:
            del holder[name]


def quality_of_service(spec: dict[str, Any]) -> str:
    """Name the class of a pod by its cpu and memory, as ``status.qosClass`` does."""
    asked = [
        (resources.get(kind) or {}).get(name)
        for resources in (container["resources"] for container in _containers(spec))
        for kind in ("requests", "limits")
        for name in ("cpu", "memory")
    ]
    if not any(asked):
        return "BestEffort"
    equal = all(
        (container["resources"].get("requests") or {}).get(name)
        == (container["resources"].get("limits") or {}).get(name)
        for container in _containers(spec)
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if all(asked) and equal else "Burstable"


def _write_canonically(resources: dict[str, Any]) -> None:
    """The API server reads quantities as numbers and writes them its own way: 1000 becomes 1k."""
    for kind in ("limits", "requests"):
        amounts = resources.get(kind)
        if amounts:
            resources[kind] = {name: _canonical(text) for name, text in amounts.items()}


@lru_cache(maxsize=1024)
def _canonical(text: Any) -> Any:
    try:
        return canonical(text)
    except QuantityError:
        return text  # refused later, with its path


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for where in _CONTAINER_LISTS for one in spec.get(where) or ()]


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rsplit("/", 1)[-1].partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"

"""What does kube-apiserver fill into a pod or a pod template that leaves something out?

Only the defaults that clients of Jobs and pods meet; probes, ports and volumes are left as they are. Functions fill in
place: they are given the writer's own copy.
"""

from typing import Any

from app.core.manifests import Manifest

_CONTAINER_LISTS = ("initContainers", "containers")


def fill_pod_spec(spec: dict[str, Any]) -> None:
    """Fill the defaults that a pod and a pod template share."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    for container in _containers(spec):
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("resources", {})
        container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image") or "")))


def fill_pod(pod: Manifest) -> None:
    """Fill the defaults of a pod proper: those of its spec, and requests from limits."""
    spec = pod.setdefault("spec", {})
    fill_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in _containers(spec):
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for where in _CONTAINER_LISTS for one in spec.get(where) or ()]


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rsplit("/", 1)[-1].partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"

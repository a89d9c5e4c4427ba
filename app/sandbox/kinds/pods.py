"""What does the simulated API know of pods: their columns, defaults, and which updates it refuses?

From Kubernetes' pod strategy and validation: of a pod's spec only images, the active deadline, added tolerations and
removed scheduling gates may change, and while gates are left also added node selectors and the node affinity. Binding
is not an update, and the simulated scheduler does not come through here.
"""

from typing import Any

from app.apiserver.kinds import AGE, Column, Kind
from app.core.manifests import Manifest
from app.errors import FieldError, Invalid
from app.sandbox.faulty_fields import forbidden, invalid
from app.sandbox.kinds import shapes
from app.sandbox.kinds.schema import CONDITIONS, POD_SPEC, anything, text
from app.sandbox.pods.defaults import fill_pod, quality_of_service
from app.sandbox.pods.faults import pod_faults

_CHANGEABLE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def prepare_pod(new: Manifest, old: Manifest | None) -> Manifest:
    shapes.check(new, shapes.POD)
    fill_pod(new)
    if old is None:
        faults = pod_faults(new["spec"], "spec")
        new["status"] = _first_status(new)
    else:
        faults = [] if new["spec"] == old["spec"] else _update_faults(new["spec"], old["spec"])
    if faults:
        raise Invalid("the pod is invalid", faults)
    return new


def _first_status(pod: Manifest) -> Manifest:
    status: Manifest = {"phase": "Pending", "qosClass": quality_of_service(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"].get("creationTimestamp"),
            }
        ]
    return status


def _update_faults(spec: dict[str, Any], before: dict[str, Any]) -> list[FieldError]:
    found = []
    if any(one not in spec.get("tolerations", ()) for one in before.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        found.append(forbidden("spec.tolerations", detail))
    gates = [one["name"] for one in before.get("schedulingGates") or ()]
    for index, one in enumerate(spec.get("schedulingGates") or ()):
        if one["name"] not in gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{one['name']}'"
            found.append(forbidden(f"spec.schedulingGates[{index}].name", detail))
    selector = spec.get("nodeSelector")
    if gates and not _only_added(selector, before.get("nodeSelector")):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        found.append(invalid("spec.nodeSelector", selector, detail))
    if _fixed(spec, gated=bool(gates)) != _fixed(before, gated=bool(gates)):
        detail = f"pod updates may not change fields other than {_UPDATABLE}"
        found.append(forbidden("spec", detail))
    return found


def _only_added(new: dict[str, str] | None, old: dict[str, str] | None) -> bool:
    return (old or {}).items() <= (new or {}).items()


def _fixed(spec: dict[str, Any], *, gated: bool) -> dict[str, Any]:
    """Return the part of a pod's spec that must stay as it is."""
    kept = {key: value for key, value in spec.items() if value and key not in _CHANGEABLE}
    for where in ("containers", "initContainers"):
        if where in kept:
            kept[where] = [
                {key: value for key, value in one.items() if key != "image"} for one in kept[where]
            ]
    if gated:
        kept.pop("nodeSelector", None)
        affinity = {
            k: v for k, v in (kept.pop("affinity", None) or {}).items() if k != "nodeAffinity"
        }
        if affinity:
            kept["affinity"] = affinity
    return kept


def _status(pod: Manifest) -> Manifest:
    return pod.get("status") or {}


def _container_statuses(pod: Manifest) -> list[Manifest]:
    statuses: list[Manifest] = _status(pod).get("containerStatuses") or []
    return statuses


def _ready(pod: Manifest) -> str:
    ready = sum(bool(one.get("ready")) for one in _container_statuses(pod))
    return f"{ready}/{len(pod['spec'].get('containers') or ())}"


def _word(pod: Manifest) -> str:
    """Return the one word that kubectl shows for the state of a pod."""
    status = _status(pod)
    phase = status.get("phase") or "Unknown"
    if "deletionTimestamp" in pod["metadata"] and phase not in ("Succeeded", "Failed"):
        return "Terminating"
    gated = any(one.get("reason") == "SchedulingGated" for one in status.get("conditions") or ())
    word = "SchedulingGated" if gated else str(status.get("reason") or phase)
    for one in reversed(_container_statuses(pod)):
        ended = (one.get("state") or {}).get("terminated")
        word = ended.get("reason") or f"ExitCode:{ended.get('exitCode')}" if ended else word
    return word


def _restarts(pod: Manifest) -> str:
    return str(sum(one.get("restartCount", 0) for one in _container_statuses(pod)))


_COLUMNS = (
    Column(name="Ready", cell=_ready, description="Containers that are ready, of all."),
    Column(name="Status", cell=_word, description="The state of the pod in one word."),
    Column(name="Restarts", cell=_restarts, description="How often containers were restarted."),
    AGE,
    Column(name="IP", cell=lambda pod: _status(pod).get("podIP") or "<none>", priority=1),
    Column(name="Node", cell=lambda pod: pod["spec"].get("nodeName") or "<none>", priority=1),
    Column(name="Nominated Node", cell=lambda _: "<none>", priority=1),
    Column(name="Readiness Gates", cell=lambda _: "<none>", priority=1),
)

POD = Kind(
    group="",
    version="v1",
    kind="Pod",
    plural="pods",
    singular="pod",
    namespaced=True,
    short_names=("po",),
    categories=("all",),
    columns=_COLUMNS,
    schema=anything(
        "A set of containers that run on one node.",
        spec=POD_SPEC,
        status=anything(
            "What the kubelet and the scheduler say about the pod.",
            phase=text("Pending, Running, Succeeded or Failed."),
            conditions=CONDITIONS,
        ),
    ),
    prepare=prepare_pod,
    preserve_unknown=True,
    selectable=("spec.nodeName", "status.phase", "spec.schedulerName", "spec.restartPolicy"),
    unconditional_update=True,
)

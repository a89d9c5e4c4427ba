"""What does the simulated API know of nodes and namespaces?"""

from app.apiserver.kinds import AGE, Column, Kind
from app.core.manifests import Manifest
from app.sandbox.kinds.schema import CONDITIONS, anything, flag, keyed, strings, text

_ROLE = "node-role.kubernetes.io/"


def _prepare_node(new: Manifest, old: Manifest | None) -> Manifest:
    new.setdefault("spec", {})
    if old is None:
        new.setdefault("status", {})
    return new


def _prepare_namespace(new: Manifest, old: Manifest | None) -> Manifest:
    metadata = new["metadata"]
    metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]
    new.setdefault("spec", {})["finalizers"] = ["kubernetes"]
    if old is None:
        new["status"] = {"phase": "Active"}
    return new


def _node_status(node: Manifest) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = [one["status"] == "True" for one in conditions if one["type"] == "Ready"]
    words = ["Ready" if ready[0] else "NotReady"] if ready else ["Unknown"]
    if node["spec"].get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Manifest) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))
    return ",".join(roles) or "<none>"


def _info(node: Manifest, field: str) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get(field) or "<unknown>")


def _address(node: Manifest, kind: str) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((one["address"] for one in addresses if one["type"] == kind), "<none>")


NODE = Kind(
    group="",
    version="v1",
    kind="Node",
    plural="nodes",
    singular="node",
    namespaced=False,
    short_names=("no",),
    columns=(
        Column(name="Status", cell=_node_status, description="Whether the node takes pods."),
        Column(name="Roles", cell=_roles, description="The roles of the node."),
        AGE,
        Column(name="Version", cell=lambda node: _info(node, "kubeletVersion")),
        Column(name="Internal-IP", cell=lambda node: _address(node, "InternalIP"), priority=1),
        Column(name="External-IP", cell=lambda node: _address(node, "ExternalIP"), priority=1),
        Column(name="OS-Image", cell=lambda node: _info(node, "osImage"), priority=1),
        Column(name="Kernel-Version", cell=lambda node: _info(node, "kernelVersion"), priority=1),
        Column(
            name="Container-Runtime",
            cell=lambda node: _info(node, "containerRuntimeVersion"),
            priority=1,
        ),
    ),
    schema=anything(
        "A machine that runs pods.",
        spec=anything(
            "How the node may be used.",
            taints=keyed("What keeps pods out that do not tolerate it.", "key", "effect"),
            unschedulable=flag("No new pods are put here."),
        ),
        status=anything(
            "What the kubelet says about the node.",
            allocatable=strings("What pods may request in sum."),
            capacity=strings("What the machine has."),
            conditions=CONDITIONS,
        ),
    ),
    prepare=_prepare_node,
    preserve_unknown=True,
    selectable=("spec.unschedulable",),
    unconditional_update=True,
)

NAMESPACE = Kind(
    group="",
    version="v1",
    kind="Namespace",
    plural="namespaces",
    singular="namespace",
    namespaced=False,
    short_names=("ns",),
    columns=(
        Column(
            name="Status",
            cell=lambda namespace: (namespace.get("status") or {}).get("phase") or "Active",
            description="The status of the namespace.",
        ),
        AGE,
    ),
    schema=anything(
        "A space for names.",
        spec=anything("What holds the namespace."),
        status=anything("Whether it is on its way out.", phase=text("Active or Terminating.")),
    ),
    prepare=_prepare_namespace,
    preserve_unknown=True,
    selectable=("status.phase",),
    unconditional_update=True,
)

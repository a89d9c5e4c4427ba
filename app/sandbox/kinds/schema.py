"""What is said about the fields of the simulated cluster's kinds?

Little: every object takes any field, as the core kinds are far larger than what is simulated. Described are the fields
that people ask `kubectl explain` about here, and the lists whose items have keys, so that server-side apply merges them
item by item as the real API does.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

_OPEN = {"x-kubernetes-preserve-unknown-fields": True}


def anything(description: str = "", **fields: Schema) -> Schema:
    """Return the schema of an object that takes any field; `fields` are those worth describing."""
    return {"type": "object", "description": description, "properties": fields, **_OPEN}


def text(description: str) -> Schema:
    return {"type": "string", "description": description}


def number(description: str) -> Schema:
    return {"type": "integer", "format": "int32", "description": description}


def flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def strings(description: str) -> Schema:
    additional = {"type": "string"}
    return {"type": "object", "description": description, "additionalProperties": additional}


def keyed(description: str, *keys: str, items: Schema | None = None) -> Schema:
    """Return the schema of a list whose items are told apart by `keys`."""
    return {
        "type": "array",
        "description": description,
        "items": items or _item(keys),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


def _item(keys: tuple[str, ...]) -> Schema:
    properties = {key: {"type": "string"} for key in keys}
    return {"type": "object", "properties": properties, **_OPEN}


CONDITIONS = keyed("What is true of the object at the moment, and since when.", "type")

_CONTAINER = anything(
    "One container of the pod.",
    name=text("Name of the container, unique within the pod."),
    image=text("Image to run; the simulated kubelet runs nothing."),
    env=keyed("Environment variables.", "name"),
    resources=anything("Requests and limits; requests decide where the pod fits."),
)

POD_SPEC = anything(
    "What the pod runs and where it may be put.",
    containers=keyed("Containers of the pod.", "name", items=_CONTAINER),
    initContainers=keyed("Containers that run first.", "name", items=_CONTAINER),
    nodeName=text("The node that the pod is bound to."),
    nodeSelector=strings("Labels that the node must have."),
    priorityClassName=text("The PriorityClass from which the pod's priority is taken."),
    restartPolicy=text("Always, OnFailure or Never."),
    schedulingGates=keyed("The pod is not scheduled while it has any.", "name"),
    terminationGracePeriodSeconds={"type": "integer", "format": "int64"},
)

POD_TEMPLATE = anything(
    "The pods to create.",
    metadata=anything(
        "Labels and annotations of the pods.",
        labels=strings("Labels of the pods."),
        annotations=strings("Annotations of the pods."),
    ),
    spec=POD_SPEC,
)

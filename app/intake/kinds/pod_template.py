"""The pod template inside a Workload: typed where decisions depend on it, open everywhere else.

Kubernetes adds pod fields with each release, and a Workload must carry them all back to the job unharmed; so fields we
do not know are kept, never refused. What quota is counted from (requests, limits, overhead) is checked to the letter: a
misspelt or negative amount would be a leak.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds import names
from app.intake.kinds.affinity import Affinity
from app.intake.kinds.fields import (
    ATOMIC,
    ATOMIC_MAP,
    BY_NAME,
    Int32,
    Int64,
    Open,
    ResourceList,
    by,
)
from app.intake.kinds.metadata import annotation_rules, label_rules
from app.intake.kinds.place import Place


class ResourceRequirements(Open):
    requests: ResourceList | None = Field(
        None, description="What is needed at least; this is what quota is counted from."
    )
    limits: ResourceList | None = Field(
        None, description="What may be used at most; stands in for absent requests."
    )
    claims: list[dict[str, Any]] | None = Field(
        None, description="Claims on devices, by name.", json_schema_extra=BY_NAME
    )


class ContainerPort(Open):
    container_port: Int32 = Field(description="The port inside the container.")
    protocol: str = Field("TCP", description="TCP, UDP or SCTP.")


class EnvironmentVariable(Open):
    name: str = Field(description="The name of the variable.")
    value: str | None = Field(None, description="Its value.")


class Container(Open):
    name: str = Field(description="The name of the container.")
    image: str | None = Field(None, description="The image it runs.")
    command: list[str] | None = Field(
        None, description="Entry point instead of the image's.", json_schema_extra=ATOMIC
    )
    args: list[str] | None = Field(
        None, description="Arguments of the entry point.", json_schema_extra=ATOMIC
    )
    env: list[EnvironmentVariable] | None = Field(
        None, description="Environment variables.", json_schema_extra=BY_NAME
    )
    ports: list[ContainerPort] | None = Field(
        None, description="Ports it listens on.", json_schema_extra=by("containerPort", "protocol")
    )
    resources: ResourceRequirements | None = Field(None, description="What it needs.")
    restart_policy: str | None = Field(
        None, description="Always makes an init container a sidecar that runs as long as the pod."
    )


class SchedulingGate(Open):
    name: str = Field(description="The name of the gate.")


class Volume(Open):
    name: str = Field(description="The name by which containers mount it.")


class PodToleration(Open):
    key: str | None = Field(None, description="The taint key it answers.")
    operator: str | None = Field(None, description="Equal (also when absent) or Exists.")
    value: str | None = Field(None, description="The taint value it answers.")
    effect: str | None = Field(None, description="The taint effect it answers.")
    toleration_seconds: Int64 | None = Field(
        None, description="How long a NoExecute taint is tolerated."
    )


Containers = Annotated[list[Container], Field(json_schema_extra=BY_NAME)]


class PodSpec(Open):
    containers: Containers = Field(description="The containers that run side by side.")
    init_containers: Containers | None = Field(
        None, description="Containers that run one after the other before those."
    )
    node_selector: dict[str, str] | None = Field(
        None, description="Labels that a node must have.", json_schema_extra=ATOMIC_MAP
    )
    affinity: Affinity | None = Field(None, description="Which nodes, and which neighbours.")
    tolerations: list[PodToleration] | None = Field(
        None, description="Taints that do not keep the pods away.", json_schema_extra=ATOMIC
    )
    overhead: ResourceList | None = Field(
        None, description="What a pod costs beyond its containers (from its RuntimeClass)."
    )
    resources: ResourceRequirements | None = Field(
        None, description="What the whole pod needs, where that is set instead of per container."
    )
    priority_class_name: str | None = Field(None, description="The PriorityClass of the pods.")
    priority: Int32 | None = Field(None, description="The priority of the pods.")
    restart_policy: Literal["Always", "OnFailure", "Never"] | None = Field(
        None, description="When ended containers are started again."
    )
    runtime_class_name: str | None = Field(None, description="The RuntimeClass of the pods.")
    scheduler_name: str | None = Field(None, description="Who puts the pods on nodes.")
    service_account_name: str | None = Field(None, description="Whom the pods act as.")
    scheduling_gates: list[SchedulingGate] | None = Field(
        None, description="Gates that keep the pods from nodes.", json_schema_extra=BY_NAME
    )
    volumes: list[Volume] | None = Field(
        None, description="Volumes to mount.", json_schema_extra=BY_NAME
    )


class PodMetadata(Open):
    labels: dict[str, str] | None = Field(None, description="Labels of the pods.")
    annotations: dict[str, str] | None = Field(None, description="Annotations of the pods.")


class PodTemplate(Open):
    metadata: PodMetadata | None = Field(None, description="Labels and annotations of the pods.")
    spec: PodSpec | None = Field(None, description="What the pods are.")


def pod_template_rules(template: Place) -> Iterator[FieldError]:
    yield from label_rules(template.at("metadata", "labels"))
    yield from annotation_rules(template.at("metadata", "annotations"))
    spec = template.at("spec")
    for containers in ("initContainers", "containers"):
        for container in spec.items(containers):
            yield from _requirement_rules(container.at("resources"))
    yield from _requirement_rules(spec.at("resources"))
    yield from _amount_rules(spec.at("overhead"))


def _requirement_rules(requirements: Place) -> Iterator[FieldError]:
    if requirements.absent:
        return
    requests = requirements.at("requests")
    yield from _amount_rules(requests)
    yield from _amount_rules(requirements.at("limits"))
    for name, request in requests.entries():
        if name == "pods":
            yield request.forbidden("pods are counted by Sluice itself and cannot be requested")


def _amount_rules(amounts: Place) -> Iterator[FieldError]:
    for name, entry in amounts.entries():
        if why := names.why_not_resource(name):
            yield Place(name, entry.path).invalid(why)
        value = entry.amount
        if value is not None and value.nanos < 0:
            yield entry.invalid("must be greater than or equal to 0")

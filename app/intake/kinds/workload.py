"""Workload: the unit of admission, a gang of pod sets that starts whole or not at all.

Defaults are Kueue's (a pod set is called `main` and has one pod, a workload is active). The rules of the spec are in
`workload_rules`, those of the status in `workload_status_rules`, what may change while quota is held in
`workload_transitions`.

A Workload gets no finalizer at creation: whoever makes one for a job adds it, since only who stops the job can drop it
again; Workloads of external frameworks live without.
"""

from typing import Annotated, Literal

from pydantic import Field

from app.intake.kinds.definition import Definition
from app.intake.kinds.fields import (
    ATOMIC,
    BY_NAME,
    Count,
    Int32,
    Label,
    LevelName,
    Model,
    Object,
    Positive,
    ShortText,
    Subdomain,
)
from app.intake.kinds.pod_template import PodTemplate
from app.intake.kinds.workload_rules import annotation_rules, spec_rules
from app.intake.kinds.workload_status import WorkloadStatus
from app.intake.kinds.workload_status_rules import status_rules
from app.intake.kinds.workload_transitions import transition


class SliceConstraint(Model):
    topology: ShortText = Field(
        description="The level inside which each slice of that size must fit."
    )
    size: Positive = Field(description="How many pods make up a slice.")


class TopologyRequest(Model):
    required: ShortText | None = Field(
        None, description="The level inside one domain of which all pods must be placed."
    )
    preferred: ShortText | None = Field(
        None,
        description="The level inside one domain of which all pods should be placed if possible.",
    )
    unconstrained: bool | None = Field(
        None, description="Any placement will do, as long as there is room for every pod."
    )
    pod_index_label: LevelName | None = Field(
        None, description="The pod label that numbers the pods, for placement by rank."
    )
    sub_group_index_label: LevelName | None = Field(
        None, description="The pod label that numbers the replicated jobs of the pod set."
    )
    sub_group_count: Count | None = Field(
        None, description="How many replicated jobs the pod set consists of."
    )
    pod_set_group_name: Annotated[str, Field(max_length=256)] | None = Field(
        None, description="Pod sets of the same group get the same flavor and are placed together."
    )
    pod_set_slice_required_topology: ShortText | None = Field(
        None, description="The level inside one domain of which each slice must be placed."
    )
    pod_set_slice_size: Positive | None = Field(None, description="How many pods make up a slice.")
    podset_slice_required_topology_constraints: (
        Annotated[list[SliceConstraint], Field(max_length=3)] | None
    ) = Field(
        None,
        description="Slices of slices: constraints on several levels, widest first.",
        json_schema_extra=ATOMIC,
    )


class PodSet(Model):
    name: Label = Field("main", description="The name of the pod set.")
    template: PodTemplate = Field(description="What each pod is.")
    count: Count = Field(1, description="How many pods there are.")
    min_count: Positive | None = Field(
        None,
        description="How few pods would do. With it the workload may be admitted in part; only one pod set has it.",
    )
    topology_request: TopologyRequest | None = Field(
        None, description="How near to each other the pods must be placed."
    )


class PriorityClassRef(Model):
    group: Literal["kueue.x-k8s.io", "scheduling.k8s.io"] = Field(
        description="kueue.x-k8s.io for a WorkloadPriorityClass, scheduling.k8s.io for a PriorityClass."
    )
    kind: Literal["WorkloadPriorityClass", "PriorityClass"] = Field(
        description="The kind of the class."
    )
    name: Subdomain = Field(description="The name of the class.")


class PreemptionGate(Model):
    name: Annotated[str, Field(min_length=1, max_length=316)] = Field(
        description="The name of the gate."
    )


class WorkloadSpec(Model):
    pod_sets: list[PodSet] = Field(
        min_length=1,
        max_length=18,
        description="The pods, as sets of equal ones. Cannot be changed while quota is reserved.",
        json_schema_extra=BY_NAME,
    )
    queue_name: Subdomain | None = Field(
        None,
        description="The LocalQueue, in the same namespace. Cannot be changed while quota is reserved.",
    )
    priority_class_ref: PriorityClassRef | None = Field(
        None, description="The class that the priority was taken from."
    )
    priority: Int32 | None = Field(
        None, description="Higher goes first. Required with a priority class; 0 when absent."
    )
    active: bool = Field(
        True,
        description="False takes the workload out of the line and evicts it, until it is true again.",
    )
    maximum_execution_time_seconds: Positive | None = Field(
        None, description="How long it may stay admitted before it is deactivated."
    )
    preemption_gates: list[PreemptionGate] | None = Field(
        None,
        max_length=8,
        description="Gates, closed until somebody opens them in the status: with a closed one the workload may be"
        " admitted where it fits but preempts nobody.",
        json_schema_extra=BY_NAME,
    )


class Workload(Object):
    """Pods that wait for quota together, start together and give it back together."""

    spec: WorkloadSpec | None = Field(None, description="What is to run, and where it queues.")
    status: WorkloadStatus | None = Field(None, description="How far it has come.")


WORKLOAD = Definition(
    model=Workload,
    rules=spec_rules,
    status_rules=status_rules,
    metadata_rules=annotation_rules,
    transition=transition,
)

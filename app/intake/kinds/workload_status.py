"""What a Workload's status reports: conditions, the admission, checks, counters of what went before.

Only the structure is here. Several controllers write this status (ours, those of admission checks, external
frameworks), so what must hold across its fields is checked in `workload_status_rules`.
"""

from typing import Annotated, Literal

from pydantic import Field

from app.intake.kinds.cluster_queue import AdmissionCheckName
from app.intake.kinds.conditions import Conditions, conditions_field
from app.intake.kinds.fields import (
    ATOMIC,
    BY_NAME,
    Count,
    Label,
    Model,
    Moment,
    ResourceList,
    Subdomain,
    by,
)
from app.intake.kinds.taints import Toleration
from app.intake.kinds.topology_assignment import TopologyAssignment

ClusterName = Annotated[str, Field(max_length=256)]
Reason = Annotated[str, Field(max_length=316)]


class PodSetAssignment(Model):
    name: Label = Field("main", description="The pod set.")
    flavors: dict[str, Subdomain] | None = Field(
        None, description="The flavor that was chosen for each resource."
    )
    resource_usage: ResourceList | None = Field(
        None, description="What all pods of the set together are counted with."
    )
    count: Count | None = Field(None, description="How many pods were admitted.")
    topology_assignment: TopologyAssignment | None = Field(
        None, description="Where the pods were placed."
    )
    delayed_topology_request: Literal["Pending", "Ready"] | None = Field(
        None, description="Whether placement still waits for an admission check."
    )


class Admission(Model):
    cluster_queue: Subdomain = Field(description="The ClusterQueue whose quota is held.")
    pod_set_assignments: list[PodSetAssignment] | None = Field(
        None,
        max_length=18,
        description="What each pod set was given.",
        json_schema_extra=BY_NAME,
    )


class RequeueState(Model):
    count: Count | None = Field(None, description="How many times it was put back in line.")
    requeue_at: Moment | None = Field(None, description="When it may be considered again.")


class ReclaimablePod(Model):
    name: Label = Field(description="The pod set.")
    count: Count = Field(description="How many of its pods need their quota no more.")


class PodSetUpdate(Model):
    name: Label = Field(description="The pod set.")
    labels: dict[str, str] | None = Field(None, description="Labels to add to the pods.")
    annotations: dict[str, str] | None = Field(None, description="Annotations to add to the pods.")
    node_selector: dict[str, str] | None = Field(None, description="Node labels to require.")
    tolerations: list[Toleration] | None = Field(
        None, max_length=8, description="Tolerations to add.", json_schema_extra=ATOMIC
    )


class AdmissionCheckState(Model):
    name: AdmissionCheckName = Field(description="The AdmissionCheck.")
    state: Literal["Pending", "Ready", "Retry", "Rejected"] = Field(description="What it says.")
    last_transition_time: Moment = Field(description="When it last said something else.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="Why, for people.")
    requeue_after_seconds: Count | None = Field(
        None, description="How long to wait before trying again after Retry."
    )
    retry_count: Count | None = Field(None, description="How many times it said Retry.")
    pod_set_updates: list[PodSetUpdate] | None = Field(
        None,
        max_length=18,
        description="What the check wants added to the pods.",
        json_schema_extra=ATOMIC,
    )


class PodSetRequest(Model):
    name: Label = Field(description="The pod set.")
    resources: ResourceList | None = Field(
        None, description="What all pods of the set together would be counted with."
    )


class EvictionCount(Model):
    reason: Reason = Field(description="Why it was evicted.")
    underlying_cause: Reason = Field(
        description="What was behind that, where there is more to say."
    )
    count: Count = Field(description="How many times.")


class SchedulingStats(Model):
    evictions: list[EvictionCount] | None = Field(
        None,
        max_length=256,
        description="How often it was evicted, by reason and cause.",
        json_schema_extra=by("reason", "underlyingCause"),
    )


class UnhealthyNode(Model):
    name: Annotated[str, Field(max_length=63)] = Field(description="The node.")


class PreemptionGateState(Model):
    name: Annotated[str, Field(min_length=1, max_length=316)] = Field(description="The gate.")
    position: Literal["Closed", "Open"] = Field(description="Whether preemption may pass.")
    last_transition_time: Moment = Field(description="When the gate last moved.")


class WorkloadStatus(Model):
    conditions: Conditions | None = conditions_field("Workload")
    admission: Admission | None = Field(
        None,
        description="The quota held: where, which flavors, how much. Set or cleared as a whole, never edited.",
    )
    requeue_state: RequeueState | None = Field(
        None, description="Back-off after pods that did not become ready."
    )
    reclaimable_pods: list[ReclaimablePod] | None = Field(
        None,
        max_length=18,
        description="Pods that are done, whose quota is given back early.",
        json_schema_extra=BY_NAME,
    )
    admission_checks: list[AdmissionCheckState] | None = Field(
        None, max_length=8, description="What the checks say.", json_schema_extra=BY_NAME
    )
    resource_requests: list[PodSetRequest] | None = Field(
        None,
        max_length=18,
        description="What it was counted with when it was last considered; only while not admitted.",
        json_schema_extra=BY_NAME,
    )
    accumulated_past_execution_time_seconds: Count | None = Field(
        None, description="How long it was admitted in earlier attempts."
    )
    scheduling_stats: SchedulingStats | None = Field(None, description="What happened so far.")
    nominated_cluster_names: list[ClusterName] | None = Field(
        None,
        max_length=20,
        description="Worker clusters that may take it; empty once one did.",
        json_schema_extra=ATOMIC,
    )
    cluster_name: ClusterName | None = Field(None, description="The worker cluster that took it.")
    unhealthy_nodes: list[UnhealthyNode] | None = Field(
        None,
        max_length=8,
        description="Failed nodes that its pods are being moved away from.",
        json_schema_extra=BY_NAME,
    )
    preemption_gates: list[PreemptionGateState] | None = Field(
        None,
        max_length=8,
        description="Where the preemption gates stand.",
        json_schema_extra=BY_NAME,
    )

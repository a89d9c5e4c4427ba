"""Node affinity of a pod: the part of a pod's affinity that decides which flavors a pod set can use.

It is typed down to the operators, because a misspelt one would match no flavor and leave the workload waiting without a
reason; affinity among pods is kept as written.
"""

from typing import Any, Literal

from pydantic import Field

from app.intake.kinds.fields import ATOMIC, Int32, Open


class NodeSelectorRequirement(Open):
    key: str = Field(description="The node label, or for matchFields the node field.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        description="How it is compared."
    )
    values: list[str] | None = Field(
        None, description="What it is compared with.", json_schema_extra=ATOMIC
    )


class NodeSelectorTerm(Open):
    match_expressions: list[NodeSelectorRequirement] | None = Field(
        None, description="Requirements on node labels; all must hold.", json_schema_extra=ATOMIC
    )
    match_fields: list[NodeSelectorRequirement] | None = Field(
        None, description="Requirements on node fields; all must hold.", json_schema_extra=ATOMIC
    )


class NodeSelector(Open):
    node_selector_terms: list[NodeSelectorTerm] = Field(
        description="Alternatives; one of them must hold.", json_schema_extra=ATOMIC
    )


class PreferredTerm(Open):
    weight: Int32 = Field(description="How much it counts, 1 to 100.")
    preference: NodeSelectorTerm = Field(description="What is preferred.")


class NodeAffinity(Open):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = Field(
        None, description="What nodes must have."
    )
    preferred_during_scheduling_ignored_during_execution: list[PreferredTerm] | None = Field(
        None, description="What nodes should rather have.", json_schema_extra=ATOMIC
    )


class Affinity(Open):
    node_affinity: NodeAffinity | None = Field(None, description="Which nodes the pods may use.")
    pod_affinity: dict[str, Any] | None = Field(None, description="Which pods they should be near.")
    pod_anti_affinity: dict[str, Any] | None = Field(
        None, description="Which pods they should be away from."
    )

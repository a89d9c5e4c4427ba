"""What a ClusterQueue's status reports: counters, usage by flavor and resource, conditions, share.

All of it is derived from admitted workloads by the engine; nobody has to write it, and nothing is decided by it.
"""

from typing import Annotated

from pydantic import Field

from app.intake.kinds.conditions import Conditions, conditions_field
from app.intake.kinds.fair_sharing import FairSharingStatus
from app.intake.kinds.fields import BY_NAME, Int32, Model, Quantity, Subdomain


class ResourceUsage(Model):
    name: str = Field(description="The resource.")
    total: Quantity | None = Field(None, description="How much of it is in use, borrowed included.")
    borrowed: Quantity | None = Field(
        None, description="How much of that is above the nominal quota."
    )


class FlavorUsage(Model):
    name: Subdomain = Field(description="The flavor.")
    resources: list[ResourceUsage] = Field(
        max_length=64, description="Usage of each resource.", json_schema_extra=BY_NAME
    )


FlavorUsages = Annotated[list[FlavorUsage], Field(max_length=256, json_schema_extra=BY_NAME)]


class ClusterQueueStatus(Model):
    conditions: Conditions | None = conditions_field("ClusterQueue")
    flavors_reservation: FlavorUsages | None = Field(
        None, description="Quota held by workloads that reserved it, admitted or not."
    )
    flavors_usage: FlavorUsages | None = Field(
        None, description="Quota held by workloads that are admitted."
    )
    pending_workloads: Int32 | None = Field(None, description="How many workloads wait here.")
    reserving_workloads: Int32 | None = Field(
        None, description="How many workloads hold quota here."
    )
    admitted_workloads: Int32 | None = Field(
        None, description="How many workloads are admitted and not finished."
    )
    fair_sharing: FairSharingStatus | None = Field(
        None, description="The current share of this queue, when fair sharing is on."
    )

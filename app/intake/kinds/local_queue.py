"""LocalQueue: a tenant's door in a namespace, opening into one ClusterQueue for good.

The ClusterQueue need not exist yet, and may be named later, but once named it stays: workloads inside hold its quota.
Stopping the door stops only those who came through it.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds.cluster_queue import StopPolicy
from app.intake.kinds.conditions import Conditions, conditions_field
from app.intake.kinds.definition import Definition
from app.intake.kinds.fair_sharing import FairSharing, FairSharingStatus, weight_rules
from app.intake.kinds.fields import BY_NAME, Int32, Model, Object, Quantity, Subdomain
from app.intake.kinds.place import Place


class LocalQueueSpec(Model):
    cluster_queue: Subdomain | None = Field(
        None, description="The ClusterQueue whose quota is used. Cannot be changed once set."
    )
    stop_policy: StopPolicy = Field(
        "None",
        description="Hold reserves no more quota for this queue and cancels reservations that are not admitted yet;"
        " HoldAndDrain evicts admitted workloads as well; None lets the queue run.",
    )
    fair_sharing: FairSharing | None = Field(
        None, description="How this queue counts in usage-based admission fair sharing."
    )


class LocalQueueResourceUsage(Model):
    name: str = Field(description="The resource.")
    total: Quantity | None = Field(None, description="How much of it is in use.")


class LocalQueueFlavorUsage(Model):
    name: Subdomain = Field(description="The flavor.")
    resources: list[LocalQueueResourceUsage] = Field(
        max_length=64, description="Usage of each resource.", json_schema_extra=BY_NAME
    )


LocalQueueUsages = Annotated[
    list[LocalQueueFlavorUsage], Field(max_length=256, json_schema_extra=BY_NAME)
]


class LocalQueueStatus(Model):
    conditions: Conditions | None = conditions_field("LocalQueue")
    pending_workloads: Int32 | None = Field(None, description="How many workloads wait here.")
    reserving_workloads: Int32 | None = Field(
        None, description="How many workloads of this queue hold quota."
    )
    admitted_workloads: Int32 | None = Field(
        None, description="How many workloads of this queue are admitted and not finished."
    )
    flavors_reservation: LocalQueueUsages | None = Field(
        None, description="Quota held by workloads that reserved it, admitted or not."
    )
    flavors_usage: LocalQueueUsages | None = Field(
        None, description="Quota held by workloads that are admitted."
    )
    fair_sharing: FairSharingStatus | None = Field(
        None, description="The current share of this queue, when admission fair sharing is on."
    )


class LocalQueue(Object):
    """Where a team submits its workloads: a namespaced name for a ClusterQueue."""

    spec: LocalQueueSpec | None = Field(None, description="Where the queue leads.")
    status: LocalQueueStatus | None = Field(None, description="What is currently observed.")


def _rules(manifest: Place) -> Iterator[FieldError]:
    yield from weight_rules(manifest.at("spec"))


def _transition(new: Place, old: Place) -> Iterator[FieldError]:
    before, after = old.at("spec", "clusterQueue"), new.at("spec", "clusterQueue")
    if not before.absent and before.value != after.value:
        yield after.invalid("field is immutable")


LOCAL_QUEUE = Definition(model=LocalQueue, rules=_rules, transition=_transition)

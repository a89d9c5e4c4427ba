"""Fair sharing as ClusterQueues, Cohorts and LocalQueues write it, and its one rule: what weights are sensible.

The weight has Kueue's default of 1, but only where `fairSharing` is written at all; how shares are computed from it is
told in the core.
"""

from collections.abc import Iterator

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds.fields import Int64, Model, Moment, Quantity, ResourceList
from app.intake.kinds.place import Place


class FairSharing(Model):
    weight: Quantity = Field(
        1,
        description="How much this node counts when spare quota is shared out: its share of borrowed resources is"
        " divided by the weight, and the lower the result, the sooner it is served. 0 puts it behind everybody.",
    )


class AdmissionFairSharingStatus(Model):
    consumed_resources: ResourceList = Field(
        description="Resources used over time, with older use counting less and less."
    )
    last_update: Moment = Field(description="When these figures were computed.")


class FairSharingStatus(Model):
    weighted_share: Int64 = Field(
        description="Dominant resource share divided by the weight, rounded up; 0 while nothing is borrowed, and"
        " 9223372036854775807 for a borrower of weight 0."
    )
    admission_fair_sharing_status: AdmissionFairSharingStatus | None = Field(
        None, description="What usage-based admission fair sharing currently reckons with."
    )


def weight_rules(spec: Place) -> Iterator[FieldError]:
    """A weight is 0 or more than one billionth: anything between would overflow the shares."""
    weight = spec.at("fairSharing", "weight")
    value = weight.amount
    if value is None:
        return
    if value.nanos < 0:
        yield weight.invalid("must be greater than or equal to 0")
    elif value.nanos == 1:
        yield weight.invalid("must be 0 or greater than 1e-9")

"""ClusterQueue: who may use how much of what, and by which manners.

The defaults are those of Kueue's CRD (best-effort order, never preempt, stop looking once something can be borrowed).
Rules beyond the quota ones: a preference among flavors only where the search goes on in both cases; preempting while
borrowing only for who reclaims at all; admission checks only on flavors the queue has; weights within reason.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds.cluster_queue_status import ClusterQueueStatus
from app.intake.kinds.definition import Definition
from app.intake.kinds.fair_sharing import FairSharing, weight_rules
from app.intake.kinds.fields import BY_NAME, SET, Int32, Model, Object, Subdomain
from app.intake.kinds.place import Place
from app.intake.kinds.quotas import ResourceGroups, quota_rules
from app.intake.kinds.selectors import LabelSelector, selector_rules

EMPTY: dict[str, Any] = {"default": {}}

StopPolicy = Literal["None", "Hold", "HoldAndDrain"]
FlavorSearch = Literal["MayStopSearch", "TryNextFlavor"]
AdmissionCheckName = Annotated[str, Field(min_length=1, max_length=316)]


class FlavorFungibility(Model):
    when_can_borrow: FlavorSearch = Field(
        "MayStopSearch",
        description="Whether to go on to the next flavor when this one would fit by borrowing.",
    )
    when_can_preempt: FlavorSearch = Field(
        "TryNextFlavor",
        description="Whether to go on to the next flavor when this one would fit after preemption.",
    )
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = Field(
        None,
        description="Which of the two to prefer when every flavor needs one of them. Without it, borrowing. Only"
        " allowed when both fields above are TryNextFlavor.",
    )


class BorrowWithinCohort(Model):
    policy: Literal["Never", "LowerPriority"] = Field(
        "Never",
        description="Whether a workload that has to borrow may preempt workloads of lower priority in other"
        " ClusterQueues. Not for fair sharing.",
    )
    max_priority_threshold: Int32 | None = Field(
        None, description="Only workloads of at most this priority are preempted that way."
    )


class Preemption(Model):
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = Field(
        "Never",
        description="Whom a workload within the nominal quota may preempt to get lent quota back: nobody, workloads"
        " of lower priority, or any workload of a queue that borrows.",
    )
    borrow_within_cohort: BorrowWithinCohort | None = Field(
        None,
        description="Whom a workload may preempt in other queues while borrowing itself.",
        json_schema_extra=EMPTY,
    )
    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = Field(
        "Never",
        description="Whom a workload may preempt in its own ClusterQueue: nobody, workloads of lower priority, or"
        " also newer ones of the same priority.",
    )


class AdmissionCheckRule(Model):
    name: AdmissionCheckName = Field(description="An AdmissionCheck.")
    on_flavors: list[Subdomain] | None = Field(
        None,
        max_length=64,
        description="Flavors the check is for; without any, every flavor of the queue.",
        json_schema_extra=SET,
    )


class AdmissionChecksStrategy(Model):
    admission_checks: list[AdmissionCheckRule] = Field(
        min_length=1,
        max_length=64,
        description="The checks, each with the flavors it is for.",
        json_schema_extra=BY_NAME,
    )


class AdmissionScope(Model):
    admission_mode: Literal["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"] = Field(
        description="Whether LocalQueues that used less in the past are served first."
    )


class MigrationConstraints(Model):
    last_acceptable_flavor_name: Subdomain | None = Field(
        None,
        description="The least preferred flavor that a running workload may still move to.",
    )


class Migration(Model):
    mode: Literal["TryPreferredFlavors", "RetainFirstAdmission"] = Field(
        "TryPreferredFlavors",
        description="Whether an admitted workload keeps trying for flavors listed before its own.",
    )
    constraints: MigrationConstraints | None = Field(
        None, description="Bounds of such moves; only with TryPreferredFlavors."
    )


class ConcurrentAdmissionPolicy(Model):
    migration: Migration = Field(description="What happens after the first flavor admitted.")


class ClusterQueueSpec(Model):
    resource_groups: ResourceGroups | None = Field(
        None,
        description="The quotas. Each resource and each flavor belongs to one group; up to 16 groups and 256 flavors.",
    )
    cohort_name: Subdomain | None = Field(
        None,
        description="The cohort to borrow from and lend to. It need not exist as an object. Without it, the queue has"
        " its nominal quota and nothing else.",
    )
    queueing_strategy: Literal["StrictFIFO", "BestEffortFIFO"] = Field(
        "BestEffortFIFO",
        description="What happens behind a workload that does not fit: with StrictFIFO everything waits, with"
        " BestEffortFIFO later workloads that fit may pass.",
    )
    namespace_selector: LabelSelector | None = Field(
        None,
        description="Namespaces whose workloads are accepted. Without it none are; an empty selector accepts all.",
    )
    flavor_fungibility: FlavorFungibility | None = Field(
        None,
        description="When to go on to the next flavor instead of borrowing or preempting in this one.",
        json_schema_extra=EMPTY,
    )
    preemption: Preemption | None = Field(
        None, description="Whom workloads of this queue may preempt.", json_schema_extra=EMPTY
    )
    admission_checks_strategy: AdmissionChecksStrategy | None = Field(
        None, description="Checks that must be ready after quota is reserved and before admission."
    )
    stop_policy: StopPolicy = Field(
        "None",
        description="Hold reserves no more quota and cancels reservations that are not admitted yet; HoldAndDrain"
        " evicts admitted workloads as well; None lets the queue run.",
    )
    fair_sharing: FairSharing | None = Field(
        None, description="How this queue counts among its siblings when fair sharing is on."
    )
    admission_scope: AdmissionScope | None = Field(
        None,
        description="Whether past usage decides the order among the LocalQueues of this queue.",
    )
    concurrent_admission_policy: ConcurrentAdmissionPolicy | None = Field(
        None,
        description="Lets a workload try several flavors at once and start on the first. Cannot be changed once set.",
    )


class ClusterQueue(Object):
    """A pool of quota for hardware flavors, with the manners in which it is given out."""

    spec: ClusterQueueSpec | None = Field(None, description="Quotas and policies.")
    status: ClusterQueueStatus | None = Field(None, description="What is currently observed.")


def _rules(manifest: Place) -> Iterator[FieldError]:
    spec = manifest.at("spec")
    yield from quota_rules(spec, parent_field="cohortName", lends_only_nominal=True)
    yield from selector_rules(spec.at("namespaceSelector"))
    yield from _fungibility_rules(spec.at("flavorFungibility"))
    yield from _preemption_rules(spec.at("preemption"))
    yield from weight_rules(spec)
    yield from _concurrency_rules(spec)


def _fungibility_rules(fungibility: Place) -> Iterator[FieldError]:
    goes_on = all(
        fungibility.text(field) == "TryNextFlavor" for field in ("whenCanBorrow", "whenCanPreempt")
    )
    preference = fungibility.at("preference")
    if not preference.absent and not goes_on:
        yield preference.invalid(
            "can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor"
        )


def _preemption_rules(preemption: Place) -> Iterator[FieldError]:
    borrowing = preemption.at("borrowWithinCohort", "policy")
    if preemption.text("reclaimWithinCohort") == "Never" and borrowing.value == "LowerPriority":
        yield borrowing.invalid("must be Never while reclaimWithinCohort is Never")


def _concurrency_rules(spec: Place) -> Iterator[FieldError]:
    policy = spec.at("concurrentAdmissionPolicy")
    if policy.absent:
        return
    flavors = [flavor.text("name") for flavor in _flavors(spec)]
    if len(list(spec.items("resourceGroups"))) != 1:
        yield spec.at("resourceGroups").invalid(
            "must have exactly one group when concurrentAdmissionPolicy is set"
        )
    if len(flavors) > 16:
        yield spec.at("resourceGroups").invalid(
            "must have at most 16 flavors when concurrentAdmissionPolicy is set"
        )
    if spec.text("queueingStrategy") == "StrictFIFO":
        yield spec.at("queueingStrategy").invalid(
            "must be BestEffortFIFO when concurrentAdmissionPolicy is set"
        )
    migration = policy.at("migration")
    last = migration.at("constraints", "lastAcceptableFlavorName")
    if not migration.at("constraints").absent and migration.text("mode") != "TryPreferredFlavors":
        yield migration.at("constraints").forbidden("may only be set with mode TryPreferredFlavors")
    elif isinstance(last.value, str) and last.value not in flavors:
        yield last.unsupported(flavors)


def _flavors(spec: Place) -> Iterator[Place]:
    for group in spec.items("resourceGroups"):
        yield from group.items("flavors")


def _misplaced_checks(spec: Place) -> Iterator[Place]:
    """Flavors that a check is for and the queue does not have."""
    known = {flavor.text("name") for flavor in _flavors(spec)}
    for check in spec.items("admissionChecksStrategy", "admissionChecks"):
        for flavor in check.items("onFlavors"):
            if isinstance(flavor.value, str) and flavor.value not in known:
                yield flavor


def _creation_rules(manifest: Place) -> Iterator[FieldError]:
    for flavor in _misplaced_checks(manifest.at("spec")):
        yield flavor.not_found("this ClusterQueue has no quota for such a flavor")


def _transition(new: Place, old: Place) -> Iterator[FieldError]:
    tolerated = {flavor.value for flavor in _misplaced_checks(old.at("spec"))}
    for flavor in _misplaced_checks(new.at("spec")):
        if flavor.value not in tolerated:
            yield flavor.not_found("this ClusterQueue has no quota for such a flavor")
    before = old.at("spec", "concurrentAdmissionPolicy")
    after = new.at("spec", "concurrentAdmissionPolicy")
    if not before.absent and before.value != after.value:
        yield after.invalid("field is immutable once set")


CLUSTER_QUEUE = Definition(
    model=ClusterQueue,
    rules=_rules,
    creation_rules=_creation_rules,
    transition=_transition,
    finalizer=True,
)

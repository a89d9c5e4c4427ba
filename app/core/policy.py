"""Which of the configurable rules apply? One frozen value, resolved at start and handed to every decision.

The fields mirror Kueue's Configuration and feature gates as far as anything here consults them; `intake.configuration`
makes a Policy from such a file, and nothing else looks at a switch. Two policies that are equal decide alike, so a
Policy may be part of what a remembered decision depends on. Absent parts are rules that are off: a bare `Policy()` is
quota and priority alone.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from app.core.selectors import LabelSelector


class FairStrategy(StrEnum):
    """When a workload of another queue may be preempted for the sake of fair shares."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
    LESS_THAN_INITIAL_SHARE = "LessThanInitialShare"


BOTH_STRATEGIES = (
    FairStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
    FairStrategy.LESS_THAN_INITIAL_SHARE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeuing:
    """What becomes of a workload whose pods were not ready in time."""

    limit: int | None = None  # evictions before it is deactivated; None: any number
    first_delay_s: int = 60  # doubles with every eviction
    longest_delay_s: int = 3600
    keeps_place: bool = False  # in line; else it queues behind those that came before its eviction


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsReady:
    """How long an admitted workload may take until all of its pods are ready (KEP-349)."""

    timeout: timedelta = timedelta(minutes=30)
    recovery_timeout: timedelta | None = timedelta(minutes=30)  # once it was ready; None: for ever
    block_admission: bool = False  # nobody is admitted while somebody is not ready
    requeuing: Requeuing = field(default_factory=Requeuing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long workloads that came to an end are kept; None: for ever."""

    after_finished: timedelta | None = None
    after_deactivated: timedelta | None = None  # by us, not by a person: its job is deleted then


class TransformationStrategy(StrEnum):
    RETAIN = "Retain"
    REPLACE = "Replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """A resource that counts as others: so many billionths of each output for one unit of the input."""

    input: str
    outputs: tuple[tuple[str, int], ...] = ()  # resource, billionths
    strategy: TransformationStrategy = TransformationStrategy.RETAIN
    multiply_by: str | None = None  # a resource whose amount in the pod multiplies the outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """Which of the resources that pods ask for count against quota, and as what."""

    excluded_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    ignore_undeclared: bool = False  # what a queue has no quota for is not checked there

    @property
    def is_plain(self) -> bool:
        """Pods count as what they ask for."""
        return not self.excluded_prefixes and not self.transformations


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionFairness:
    """Among the LocalQueues of a ClusterQueue, those that used less are served first (KEP-4136)."""

    half_life: timedelta = timedelta()  # zero: what is over is forgotten at once
    sampling: timedelta = timedelta(minutes=5)
    weights: tuple[
        tuple[str, int], ...
    ] = ()  # resource, billionths; a resource not named weighs one

    def weight(self, resource: str) -> int:
        """In billionths."""
        return dict(self.weights).get(resource, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """Which jobs are ours to gate. None means every one that there is an answer for."""

    frameworks: tuple[str, ...] | None = None  # as in "batch/job"
    namespaces: LabelSelector | None = None
    without_queue_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    #: Strategies of fair sharing in the order they are tried; None: classical ordering and preemption.
    fair_sharing: tuple[FairStrategy, ...] | None = None
    partial_admission: bool = True
    #: Pods that are done give their quota back while the others still run.
    reclaimable_pods: bool = True
    pods_ready: PodsReady | None = None
    admission_fairness: AdmissionFairness | None = None
    accounting: Accounting = field(default_factory=Accounting)
    retention: Retention = field(default_factory=Retention)
    managed: Managed = field(default_factory=Managed)
    #: Admit nobody into room that victims have yet to leave. Kueue does: beside a preemption that frees more than its
    #: preemptor needs, what fits may start at once, and the quota is overbooked until the victims have stopped.
    never_overbook: bool = False
    #: Let workloads not preempt each other for ever, as they may in Kueue; `rivals` has the rule.
    break_loops: bool = False


DEFAULT = Policy()

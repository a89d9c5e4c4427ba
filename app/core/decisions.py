"""What a cycle concluded: whom to admit, whom to preempt, and why the others wait.

Decisions are values: a cycle returns them and changes nothing, the store makes them true or drops them. Each names the
roots of the cohort trees it relies on, so that a commit can check that their quota did not move meanwhile. Not being
admitted is a result like any other and always carries its explanation; reasons are Kueue's own, verbatim.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.core.model import Admission, Workload


class PendingReason(StrEnum):
    """Reasons of the condition QuotaReserved=False."""

    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads"
    MISCONFIGURED = "Misconfigured"
    SUSPENDED = "Suspended"
    PENDING_EVALUATION = "PendingEvaluation"
    DEACTIVATED = "Deactivated"
    ADMISSION_GATED = "AdmissionGated"
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"


class PreemptionReason(StrEnum):
    """Reasons of the condition Preempted=True."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    IN_COHORT_RECLAMATION = "InCohortReclamation"
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


class Requeue(StrEnum):
    """Why a head goes back to its queue; decides whether it stays in line or is parked."""

    GENERIC = "Generic"
    NAMESPACE_MISMATCH = "NamespaceMismatch"
    NO_FIT = "NoFit"
    NO_CANDIDATES = "PreemptionNoCandidates"
    FAILED_AFTER_NOMINATION = "FailedAfterNomination"
    PENDING_PREEMPTION = "PendingPreemption"
    PREEMPTION_GATED = "PreemptionGated"


#: Where the scan over flavors goes on: per pod set and resource the index tried last, -1 for "from the start".
Cursor = tuple[tuple[tuple[str, int], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorFact:
    """What one flavor had to say to one resource of one pod set. Amounts in the resource's unit."""

    pod_set: str
    flavor: str
    resource: str
    asked: int  # together with what earlier pod sets of the workload take of it
    available: int = 0  # now, for this queue; never below zero
    limit: int = 0  # the most this queue could ever have, borrowing included
    reason: PendingReason
    message: str
    blocked_by: str | None = None  # the lowest node of the cohort tree that has no room


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a workload is pending, for people (`message`) and for programs (`facts`)."""

    reason: PendingReason
    message: str
    facts: tuple[FlavorFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit:
    """Reserve quota. `checks` are the admission checks that the chosen flavors require."""

    uid: str
    namespace: str
    name: str
    cluster_queue: str
    admission: Admission
    checks: tuple[str, ...] = ()
    borrowing: int = 0  # height of the cohort whose quota it needs; 0: the queue's own
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Evict a victim. The quota is free only once its job has stopped."""

    uid: str
    namespace: str
    name: str
    cluster_queue: str
    reason: PreemptionReason
    message: str
    by_uid: str
    by_namespace: str
    by_name: str
    by_cluster_queue: str
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Looked at and not admitted."""

    uid: str
    namespace: str
    name: str
    cluster_queue: str
    explanation: Explanation
    requeue: Requeue
    cursor: Cursor = ()
    generation: int = 0  # of its queue, when it was looked at
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """Everything one cycle decided, in the order it was decided.

    `wakes` notes how often each queue had been woken when its head was taken, so that a wake-up during the commit is
    not lost on that head.
    """

    at: datetime
    admissions: tuple[Admit, ...] = ()
    preemptions: tuple[Preempt, ...] = ()
    pending: tuple[Pending, ...] = ()
    heads: Mapping[str, Workload] = field(default_factory=dict)  # by uid, as they were looked at
    wakes: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """No queue had a head."""
        return not (self.admissions or self.preemptions or self.pending)

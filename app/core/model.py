"""The nouns of every decision: what a cycle knows about queues, flavors and workloads.

All are frozen values with Kueue's names and Kueue's defaults; ``manifests`` makes them from v1beta2 objects and nothing
else does. A noun holds only what a decision can depend on: images, environment variables and annotations nobody reads
stay in the manifest. Equality of two nouns therefore means "no decision can tell them apart", which the image uses to
ignore status noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from app.core.resources import FlavorResource, Requests
from app.core.selectors import LabelSelector, NodeAffinity, Taint, Toleration
from app.core.topology import TopologyAssignment, TopologyRequest


class QueueingStrategy(StrEnum):
    BEST_EFFORT_FIFO = "BestEffortFIFO"
    STRICT_FIFO = "StrictFIFO"


class StopPolicy(StrEnum):
    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class PreemptionPolicy(StrEnum):
    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"
    ANY = "Any"


class FungibilityPolicy(StrEnum):
    TRY_NEXT_FLAVOR = "TryNextFlavor"
    MAY_STOP_SEARCH = "MayStopSearch"


class FungibilityPreference(StrEnum):
    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFlavor:
    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    nominal: int
    borrowing_limit: int | None = None  # None: as much as the tree has
    lending_limit: int | None = None  # None: all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    resources: tuple[str, ...]
    flavors: tuple[str, ...]  # in the order they are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Fungibility:
    when_can_borrow: FungibilityPolicy = FungibilityPolicy.MAY_STOP_SEARCH
    when_can_preempt: FungibilityPolicy = FungibilityPolicy.TRY_NEXT_FLAVOR
    preference: FungibilityPreference = FungibilityPreference.BORROWING_OVER_PREEMPTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    within_cluster_queue: PreemptionPolicy = PreemptionPolicy.NEVER
    reclaim_within_cohort: PreemptionPolicy = PreemptionPolicy.NEVER
    borrow_within_cohort: PreemptionPolicy = PreemptionPolicy.NEVER
    max_priority_threshold: int | None = None  # only victims up to it, while borrowing


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRule:
    """An admission check of a queue; no flavors named means all of them."""

    name: str
    flavors: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueue:
    name: str
    cohort: str | None = None
    groups: tuple[ResourceGroup, ...] = ()
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO
    namespace_selector: LabelSelector | None = None  # None: no namespace at all
    fungibility: Fungibility = field(default_factory=Fungibility)
    preemption: Preemption = field(default_factory=Preemption)
    stop_policy: StopPolicy = StopPolicy.NONE
    weight_nanos: int = 10**9  # of fair sharing; 10**9 is a weight of one
    checks: tuple[CheckRule, ...] = ()
    usage_based: bool = False  # of its LocalQueues, those that used less are served first
    deleting: bool = False
    covering: Mapping[str, ResourceGroup] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Index the groups by the resources they cover: every nomination asks."""
        index = {resource: group for group in self.groups for resource in group.resources}
        object.__setattr__(self, "covering", index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    name: str
    parent: str | None = None
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    weight_nanos: int = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueue:
    namespace: str
    name: str
    cluster_queue: str
    stop_policy: StopPolicy = StopPolicy.NONE
    weight_nanos: int = 10**9  # of admission fair sharing
    consumed: Mapping[str, int] = field(default_factory=dict)  # of each resource, in billionths
    consumed_at: datetime | None = None  # when that was reckoned
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPriorityClass:
    name: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionCheck:
    name: str
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    name: str
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of the cluster, as far as placement looks at it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Requests = field(default_factory=dict)
    ready: bool = True  # and not cordoned


@dataclass(frozen=True, slots=True, kw_only=True)
class PodShape:
    """What one pod of a set asks for and where it may run; shared by all sets with the same template."""

    requests: Requests = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: NodeAffinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    digest: str = ""  # equal digests: no scheduling decision can tell the templates apart
    fault: str | None = None  # why no cluster would run such a pod, e.g. a request above its limit


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    name: str
    count: int = 1
    min_count: int | None = None
    shape: PodShape = field(default_factory=PodShape)
    topology: TopologyRequest | None = None
    group: str | None = None  # pod sets of one group share their flavors, and are placed together


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetAdmission:
    """Where the pods of one set run, and what all ``count`` of them use together."""

    name: str
    count: int
    flavors: Mapping[str, str] = field(default_factory=dict)  # resource -> flavor
    usage: Requests = field(default_factory=dict)
    topology: TopologyAssignment | None = None  # its domains, in the order of the pods' ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    cluster_queue: str
    pod_sets: tuple[PodSetAdmission, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One gang: admitted whole or not at all.

    `admission` is present exactly while it holds quota, evicted or not; `requeued` is the Requeued condition, where
    ``None`` means it was never set.
    """

    uid: str
    namespace: str
    name: str
    queue_name: str
    created_at: datetime
    priority: int = 0
    priority_class: str | None = None  # of our own kind; its value is followed
    active: bool = True
    pod_sets: tuple[PodSet, ...] = ()
    generation: int = 0
    admission: Admission | None = None
    reserved_at: datetime | None = None
    admitted: bool = False
    admitted_at: datetime | None = None  # while Admitted is True
    ready: bool = False  # all of its pods
    finished: bool = False
    evicted: str | None = None  # the reason, while Evicted is True
    evicted_at: datetime | None = None
    requeued: bool | None = None
    requeue_at: datetime | None = None
    reclaimable: Mapping[str, int] = field(default_factory=dict)  # pod set -> pods that are done
    blocked_checks: tuple[str, ...] = ()  # in state Retry or Rejected
    gated: bool = False  # an admission gate or a hold keeps it out of the queues
    preemption_gated: bool = False
    deleting: bool = False

    @property
    def key(self) -> str:
        """``namespace/name``, as people refer to it."""
        return f"{self.namespace}/{self.name}"


Noun = (
    ResourceFlavor
    | ClusterQueue
    | Cohort
    | LocalQueue
    | Workload
    | WorkloadPriorityClass
    | Namespace
    | AdmissionCheck
    | Topology
    | Node
)

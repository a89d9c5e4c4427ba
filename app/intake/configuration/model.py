"""The fields of ``config.kueue.x-k8s.io/v1beta2`` Configuration, with Kueue's defaults.

Structure and single values only; what must hold between fields is in `rules`, what follows from them in `policy`.
"""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from app.intake.configuration.durations import Duration
from app.intake.configuration.machinery import (
    ClientConnection,
    Controller,
    Health,
    InternalCertManagement,
    LeaderElection,
    Metrics,
    MultiKueue,
    Tls,
    VisibilityServer,
    Webhook,
)
from app.intake.kinds.fields import Count, Model, Open, Quantity
from app.intake.kinds.selectors import LabelSelector

API_VERSION = "config.kueue.x-k8s.io/v1beta2"


class RequeuingStrategy(Model):
    timestamp: Literal["Eviction", "Creation"] = "Eviction"
    backoff_limit_count: Count | None = None
    backoff_base_seconds: Count = 60
    backoff_max_seconds: Count = 3600


class WaitForPodsReady(Model):
    timeout: Duration = timedelta(minutes=30)
    recovery_timeout: Duration | None = None
    block_admission: bool = False
    requeuing_strategy: RequeuingStrategy = Field(default_factory=RequeuingStrategy)


class Integrations(Model):
    frameworks: list[str] | None = None
    external_frameworks: list[str] | None = None
    label_keys_to_copy: list[str] | None = None


class FairSharing(Model):
    preemption_strategies: (
        list[Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]] | None
    ) = None


class AdmissionFairSharing(Model):
    usage_half_life_time: Duration = timedelta()
    usage_sampling_interval: Duration = timedelta(minutes=5)
    resource_weights: dict[str, float] | None = None


class ResourceTransformation(Model):
    input: str
    strategy: Literal["Retain", "Replace"] = "Retain"
    multiply_by: str | None = None
    outputs: dict[str, Quantity] | None = None


class DeviceClassMapping(Open):
    name: str
    device_class_names: Annotated[list[str], Field(min_length=1, max_length=8)]


class Resources(Model):
    exclude_resource_prefixes: list[str] | None = None
    quota_check_strategy: Literal["BlockUndeclared", "IgnoreUndeclared"] = "BlockUndeclared"
    transformations: list[ResourceTransformation] | None = None
    device_class_mappings: Annotated[list[DeviceClassMapping], Field(max_length=16)] | None = None


class WorkloadRetention(Model):
    after_finished: Duration | None = None
    after_deactivated_by_kueue: Duration | None = None


class ObjectRetentionPolicies(Model):
    workloads: WorkloadRetention | None = None


class Configuration(Model):
    """The whole file."""

    api_version: Literal["config.kueue.x-k8s.io/v1beta2"]
    kind: Literal["Configuration"]
    namespace: str = "kueue-system"
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    integrations: Integrations | None = None
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: Resources | None = None
    object_retention_policies: ObjectRetentionPolicies | None = None
    feature_gates: dict[str, bool] | None = None
    webhook: Webhook | None = None
    metrics: Metrics | None = None
    health: Health | None = None
    leader_election: LeaderElection | None = None
    client_connection: ClientConnection | None = None
    controller: Controller | None = None
    internal_cert_management: InternalCertManagement | None = None
    multi_kueue: MultiKueue | None = None
    visibility_server: VisibilityServer | None = None
    tls: Tls | None = None
    pprof_bind_address: str | None = None

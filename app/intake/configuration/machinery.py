"""How Kueue's own process is run: ports, certificates, clients, election, metrics, worker clusters.

Read and checked so that a file written for Kueue is accepted whole and mistakes in it are found; Sluice takes these
things from its settings, so none of them has an effect. Parts that change from release to release are left open.
"""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from app.intake.configuration.durations import Duration
from app.intake.kinds.fields import Model, Open, Positive

Port = Annotated[int, Field(ge=1, le=65535)]


class Webhook(Model):
    port: Port = 9443
    host: str | None = None
    cert_dir: str | None = None


class LocalQueueMetrics(Open):
    enable: bool = True


class CustomLabel(Open):
    name: str
    source_kind: str | None = None
    source_label_key: str | None = None
    source_annotation_key: str | None = None
    tracked_values: Annotated[list[str], Field(max_length=16)] | None = None


class Metrics(Model):
    bind_address: str = ":8443"
    enable_cluster_queue_resources: bool = False
    local_queue_metrics: LocalQueueMetrics | None = None
    custom_labels: Annotated[list[CustomLabel], Field(max_length=20)] | None = None


class Health(Model):
    health_probe_bind_address: str = ":8081"
    readiness_endpoint_name: str | None = None
    liveness_endpoint_name: str | None = None


class LeaderElection(Model):
    leader_elect: bool = True
    lease_duration: Duration = timedelta(seconds=15)
    renew_deadline: Duration = timedelta(seconds=10)
    retry_period: Duration = timedelta(seconds=2)
    resource_lock: str = "leases"
    resource_name: str = "c1f6bfd2.kueue.x-k8s.io"
    resource_namespace: str | None = None


class ClientConnection(Model):
    qps: float = 300
    burst: int = 500


class Controller(Model):
    group_kind_concurrency: dict[str, Positive] | None = None
    cache_sync_timeout: int | None = None  # in nanoseconds, as Go writes a bare duration


class InternalCertManagement(Model):
    enable: bool = True
    webhook_service_name: str | None = None
    webhook_secret_name: str | None = None


class IncrementalDispatcher(Model):
    step_size: Positive = 3


class ExternalFramework(Model):
    name: str


class AccessProvider(Open):
    name: str


class ClusterProfile(Model):
    access_providers: list[AccessProvider] | None = None
    credentials_providers: list[AccessProvider] | None = None


class MultiKueue(Model):
    gc_interval: Duration = timedelta(minutes=1)
    origin: Annotated[str, Field(max_length=63)] = "multikueue"
    worker_lost_timeout: Duration = timedelta(minutes=15)
    dispatcher_name: str = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
    incremental_dispatcher_config: IncrementalDispatcher | None = None
    external_frameworks: list[ExternalFramework] | None = None
    cluster_profile: ClusterProfile | None = None


class VisibilityServer(Model):
    bind_port: Port = 8082


class Tls(Model):
    min_version: str | None = None
    cipher_suites: list[str] | None = None
    curve_preferences: list[Any] | None = None

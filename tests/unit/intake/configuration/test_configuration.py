"""A file in Kueue's format becomes one Policy; what is wrong in it is named, and so is what has no effect."""

from datetime import timedelta
from typing import Any

import pytest
import yaml

from app.core.policy import (
    BOTH_STRATEGIES,
    Accounting,
    AdmissionFairness,
    FairStrategy,
    PodsReady,
    Policy,
    Requeuing,
    Retention,
    Transformation,
    TransformationStrategy,
)
from app.errors import Misconfigured
from app.intake.configuration import Configured, read

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
OLD = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"


def configured(text: str, head: str = HEAD) -> Configured:
    return read(yaml.safe_load(head + text))


def policy(text: str, head: str = HEAD) -> Policy:
    return configured(text, head).policy


def refused(text: str, head: str = HEAD) -> str:
    with pytest.raises(Misconfigured) as error:
        configured(text, head)
    return error.value.message


def test_no_file_is_kueues_defaults_with_half_an_hour_of_patience() -> None:
    found = read(None)
    assert found.unused == ()
    half_an_hour = timedelta(minutes=30)
    assert found.policy.pods_ready == PodsReady(timeout=half_an_hour, recovery_timeout=half_an_hour)
    assert found.policy.pods_ready.requeuing == Requeuing(limit=None)
    assert found.policy.fair_sharing is None
    assert found.policy.admission_fairness is None
    assert found.policy.accounting == Accounting()
    assert found.policy.retention == Retention()
    assert found.policy.managed.frameworks is None


def test_an_empty_file_differs_only_in_the_frameworks_that_kueue_enables_by_itself() -> None:
    assert policy("").managed.frameworks == ("batch/job",)
    assert policy("").pods_ready == read(None).policy.pods_ready


def test_everything_that_is_used() -> None:
    found = configured(
        """
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector:
  matchLabels: {team: ml}
waitForPodsReady:
  timeout: 5m
  recoveryTimeout: 3m
  blockAdmission: true
  requeuingStrategy: {timestamp: Creation, backoffLimitCount: 5, backoffBaseSeconds: 10, backoffMaxSeconds: 100}
integrations:
  frameworks: [batch/job, ray.io/rayjob, pod]
fairSharing:
  preemptionStrategies: [LessThanInitialShare]
admissionFairSharing:
  usageHalfLifeTime: 168h
  usageSamplingInterval: 1m
  resourceWeights: {cpu: 1.5, memory: 0}
resources:
  excludeResourcePrefixes: [example.com/]
  transformations:
  - input: nvidia.com/mig-1g.5gb
    strategy: Replace
    outputs: {memory: 5Gi, credits: "1.5"}
  - {input: cpu, multiplyBy: hours, outputs: {cpu-hours: 1}}
objectRetentionPolicies:
  workloads: {afterFinished: 1h, afterDeactivatedByKueue: 0s}
featureGates: {PartialAdmission: false, ReclaimablePods: false}
"""
    )
    assert found.unused == ()
    rules = found.policy
    assert rules.pods_ready == PodsReady(
        timeout=timedelta(minutes=5),
        recovery_timeout=timedelta(minutes=3),
        block_admission=True,
        requeuing=Requeuing(limit=5, first_delay_s=10, longest_delay_s=100, keeps_place=True),
    )
    assert rules.fair_sharing == (FairStrategy.LESS_THAN_INITIAL_SHARE,)
    assert rules.admission_fairness == AdmissionFairness(
        half_life=timedelta(hours=168),
        sampling=timedelta(minutes=1),
        weights=(("cpu", 1_500_000_000), ("memory", 0)),
    )
    assert rules.accounting.excluded_prefixes == ("example.com/",)
    assert rules.accounting.transformations == (
        Transformation(
            input="nvidia.com/mig-1g.5gb",
            outputs=(("credits", 1_500_000_000), ("memory", 5 * 2**30 * 10**9)),
            strategy=TransformationStrategy.REPLACE,
        ),
        Transformation(input="cpu", outputs=(("cpu-hours", 10**9),), multiply_by="hours"),
    )
    assert rules.retention == Retention(
        after_finished=timedelta(hours=1), after_deactivated=timedelta()
    )
    assert rules.managed.frameworks == ("batch/job", "ray.io/rayjob", "pod")
    assert rules.managed.without_queue_name
    assert rules.managed.namespaces is not None
    assert rules.managed.namespaces.matches({"team": "ml"})
    assert (rules.partial_admission, rules.reclaimable_pods) == (False, False)


def test_what_has_no_effect_is_accepted_and_named() -> None:
    found = configured(
        """
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":8443", enableClusterQueueResources: true, localQueueMetrics: {enable: true}}
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
controller: {groupKindConcurrency: {Job.batch: 5, Workload.kueue.x-k8s.io: 10}}
clientConnection: {qps: 50, burst: 100}
internalCertManagement: {enable: false}
integrations: {frameworks: [batch/job], externalFrameworks: [Foo.v1.example.com], labelKeysToCopy: [team]}
multiKueue: {gcInterval: 0s, dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental}
resources: {deviceClassMappings: [{name: gpu, deviceClassNames: [gpu.example.com]}]}
visibilityServer: {bindPort: 8082}
tls: {minVersion: VersionTLS12}
featureGates: {TopologyAwareScheduling: true, PartialAdmission: true}
"""
    )
    assert found.policy == policy("")
    assert found.unused == (
        "clientConnection",
        "controller",
        "featureGates.TopologyAwareScheduling",
        "health",
        "integrations.externalFrameworks",
        "integrations.labelKeysToCopy",
        "internalCertManagement",
        "leaderElection",
        "metrics",
        "multiKueue",
        "resources.deviceClassMappings",
        "tls",
        "visibilityServer",
        "webhook",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("waitForPodsReady: {timeot: 5m}", 'unknown field "waitForPodsReady.timeot"; did you mean'),
        ("waitForPodsReady: {timeout: 5}", "waitForPodsReady.timeout: "),
        ("waitForPodsReady: {timeout: -5s}", "must be greater than or equal to 0"),
        (
            "waitForPodsReady: {requeuingStrategy: {timestamp: Now}}",
            "waitForPodsReady.requeuingStrategy.timestamp: ",
        ),
        (
            "waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}",
            "waitForPodsReady.requeuingStrategy.backoffLimitCount: ",
        ),
        ("integrations: {frameworks: [batch/jobs]}", "integrations.frameworks[0]: "),
        ("integrations: {frameworks: [pod, pod]}", "integrations.frameworks[1]: Duplicate value"),
        (
            "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}",
            "fairSharing.preemptionStrategies: ",
        ),
        ("fairSharing: {enable: true}", 'unknown field "fairSharing.enable"'),
        ("admissionFairSharing: {usageSamplingInterval: 0s}", "must be greater than 0"),
        (
            "admissionFairSharing: {resourceWeights: {cpu: -1}}",
            "admissionFairSharing.resourceWeights[cpu]: ",
        ),
        (
            "resources: {transformations: [{input: a}, {input: a}]}",
            "resources.transformations[0].input: ",
        ),
        (
            "resources: {transformations: [{input: a, outputs: {b: lots}}]}",
            "resources.transformations[0].outputs[b]: ",
        ),
        (
            "resources: {quotaCheckStrategy: IgnoreUndeclared, excludeResourcePrefixes: [a]}",
            "resources.quotaCheckStrategy: ",
        ),
        (
            "managedJobsNamespaceSelector: {}",
            "managedJobsNamespaceSelector: must not match the namespace 'kube-system'",
        ),
        (
            "managedJobsNamespaceSelector: {matchExpressions: [{key: a, operator: Has}]}",
            "managedJobsNamespaceSelector.matchExpressions[0].operator: ",
        ),
        ("featureGates: {PartialAdmision: true}", "featureGates[PartialAdmision]: unknown"),
        ("objectRetentionPolicies: {workloads: {afterFinished: 1d}}", "afterFinished: "),
        ("colour: red", 'unknown field "colour"'),
    ],
)
def test_every_fault_is_named_with_its_field(text: str, message: str) -> None:
    assert message in refused(text)


def test_all_faults_are_told_at_once() -> None:
    told = refused("waitForPodsReady: {timeout: soon, blockAdmission: perhaps}\ncolour: red")
    assert all(part in told for part in ("timeout", "blockAdmission", "colour"))


@pytest.mark.parametrize("written", [[], "text", {}, {"apiVersion": "v1", "kind": "ConfigMap"}])
def test_something_else_is_no_configuration(written: Any) -> None:
    with pytest.raises(Misconfigured):
        read(written)


@pytest.mark.parametrize("base", [None, 5])
@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("timestamp", [None, "Creation"])
def test_each_part_of_the_requeuing_strategy_works_alone(
    timestamp: str | None, limit: int | None, base: int | None
) -> None:
    fields = {"timestamp": timestamp, "backoffLimitCount": limit, "backoffBaseSeconds": base}
    given = {name: value for name, value in fields.items() if value is not None}
    rules = policy(f"waitForPodsReady: {{requeuingStrategy: {given}}}").pods_ready
    assert rules is not None
    assert rules.requeuing == Requeuing(
        limit=limit, first_delay_s=base or 60, keeps_place=timestamp == "Creation"
    )


def test_recovery_takes_as_long_as_the_start_unless_it_is_switched_off() -> None:
    same, off = policy("waitForPodsReady: {timeout: 7m}"), "waitForPodsReady: {recoveryTimeout: 0s}"
    assert same.pods_ready is not None
    assert same.pods_ready.recovery_timeout == timedelta(minutes=7)
    without = policy(off).pods_ready
    assert without is not None
    assert without.recovery_timeout is None
    assert policy("featureGates: {DisableWaitForPodsReady: true}").pods_ready is None


@pytest.mark.parametrize("text", ["fairSharing: {}", "fairSharing: {preemptionStrategies: []}"])
def test_fair_sharing_without_strategies_has_both(text: str) -> None:
    assert policy(text).fair_sharing == BOTH_STRATEGIES


def test_gates_switch_their_sections_off() -> None:
    assert policy(
        "admissionFairSharing: {}\nfeatureGates: {AdmissionFairSharing: false}"
    ) == policy("")
    ignoring = "resources: {quotaCheckStrategy: IgnoreUndeclared}\n"
    assert policy(ignoring).accounting.ignore_undeclared
    assert not policy(
        f"{ignoring}featureGates: {{QuotaCheckStrategy: false}}"
    ).accounting.ignore_undeclared


def test_namespaces_of_the_cluster_and_of_kueue_are_left_alone_by_default() -> None:
    selector = policy("namespace: queues").managed.namespaces
    assert selector is not None
    names = [{"kubernetes.io/metadata.name": one} for one in ("kube-system", "queues", "team-a")]
    assert [selector.matches(labels) for labels in names] == [False, False, True]


def test_the_older_version_means_what_it_meant() -> None:
    off = configured("queueVisibility: {updateIntervalSeconds: 5}", OLD)
    assert off.policy.pods_ready is None
    assert off.unused == ("queueVisibility",)
    assert (
        configured("waitForPodsReady: {enable: false, timeout: 5m}", OLD).policy.pods_ready is None
    )

    on = configured("waitForPodsReady: {enable: true, timeout: 5m}", OLD)
    assert on.policy.pods_ready == PodsReady(
        timeout=timedelta(minutes=5), recovery_timeout=None, block_admission=True
    )
    assert on.unused == ()
    assert policy("fairSharing: {enable: false}", OLD).fair_sharing is None
    assert policy("fairSharing: {enable: true}", OLD).fair_sharing == BOTH_STRATEGIES
    assert 'unknown field "colour"' in refused("colour: red", OLD)

"""Which Policy does a Configuration stand for, and which of its fields have no effect here?"""

from collections.abc import Iterator

from app.core.policy import (
    BOTH_STRATEGIES,
    Accounting,
    AdmissionFairness,
    FairStrategy,
    Managed,
    PodsReady,
    Policy,
    Requeuing,
    Retention,
    Transformation,
    TransformationStrategy,
)
from app.core.quantity import parse
from app.core.selectors import LabelSelector, Requirement
from app.intake.configuration import gates
from app.intake.configuration.model import (
    Configuration,
    Resources,
    ResourceTransformation,
    WaitForPodsReady,
)
from app.intake.configuration.rules import KUBE_SYSTEM
from app.intake.kinds import selectors
from app.intake.kinds.place import Place

#: Kueue's own default, for a file that names no frameworks.
_FRAMEWORKS = ("batch/job",)

_BILLION = 10**9
_USED = (
    *("apiVersion", "kind", "namespace", "manageJobsWithoutQueueName"),
    *("managedJobsNamespaceSelector", "waitForPodsReady", "integrations.frameworks", "fairSharing"),
    *("admissionFairSharing", "resources.excludeResourcePrefixes", "resources.transformations"),
    *("resources.quotaCheckStrategy", "objectRetentionPolicies", "featureGates"),
)


def policy_of(of: Configuration) -> Policy:
    switched = gates.USED | (of.feature_gates or {})
    ready = None if switched["DisableWaitForPodsReady"] else _pods_ready(of.wait_for_pods_ready)
    return Policy(
        fair_sharing=_fair_sharing(of),
        partial_admission=switched["PartialAdmission"],
        reclaimable_pods=switched["ReclaimablePods"],
        pods_ready=ready,
        admission_fairness=_by_usage(of) if switched["AdmissionFairSharing"] else None,
        accounting=_accounting(of.resources, heed=switched["QuotaCheckStrategy"]),
        retention=_retention(of),
        managed=Managed(
            frameworks=_frameworks(of),
            namespaces=managed_namespaces(of),
            without_queue_name=of.manage_jobs_without_queue_name,
        ),
    )


def unused(written: Place) -> Iterator[str]:
    """The fields that the file has and Sluice has no use for, sections as a whole where none of it is used."""
    for name, field in written.entries():
        below = [used for used in _USED if used.startswith(f"{name}.")]
        if name == "featureGates":
            yield from (
                f"featureGates.{gate}" for gate, _ in field.entries() if gate not in gates.USED
            )
        elif below:
            inner = (f"{name}.{part}" for part, _ in field.entries())
            yield from (path for path in inner if path not in _USED)
        elif name not in _USED:
            yield name


def managed_namespaces(of: Configuration) -> LabelSelector:
    written = of.managed_jobs_namespace_selector
    if written is None:
        kept_out = Requirement(
            key="kubernetes.io/metadata.name",
            operator="NotIn",
            values=tuple(dict.fromkeys((KUBE_SYSTEM, of.namespace))),
        )
        return LabelSelector(requirements=(kept_out,))
    return _selector(written)


def _selector(written: selectors.LabelSelector) -> LabelSelector:
    equal = [
        Requirement(key=key, operator="In", values=(value,))
        for key, value in sorted((written.match_labels or {}).items())
    ]
    others = [
        Requirement(key=one.key, operator=one.operator, values=tuple(one.values or ()))
        for one in written.match_expressions or ()
    ]
    return LabelSelector(requirements=(*equal, *others))


def _pods_ready(of: WaitForPodsReady | None) -> PodsReady:
    """On, and patient for half an hour, unless the file says otherwise; a recovery timeout of zero is none."""
    of = of or WaitForPodsReady()
    recovery = of.timeout if of.recovery_timeout is None else of.recovery_timeout
    again = of.requeuing_strategy
    return PodsReady(
        timeout=of.timeout,
        recovery_timeout=recovery or None,
        block_admission=of.block_admission,
        requeuing=Requeuing(
            limit=again.backoff_limit_count,
            first_delay_s=again.backoff_base_seconds,
            longest_delay_s=again.backoff_max_seconds,
            keeps_place=again.timestamp == "Creation",
        ),
    )


def _fair_sharing(of: Configuration) -> tuple[FairStrategy, ...] | None:
    if of.fair_sharing is None:
        return None
    named = of.fair_sharing.preemption_strategies
    return tuple(FairStrategy(name) for name in named) if named else BOTH_STRATEGIES


def _by_usage(of: Configuration) -> AdmissionFairness | None:
    rules = of.admission_fair_sharing
    if rules is None:
        return None
    weights = sorted((rules.resource_weights or {}).items())
    return AdmissionFairness(
        half_life=rules.usage_half_life_time,
        sampling=rules.usage_sampling_interval,
        weights=tuple((name, round(weight * _BILLION)) for name, weight in weights),
    )


def _accounting(of: Resources | None, *, heed: bool) -> Accounting:
    if of is None:
        return Accounting()
    return Accounting(
        excluded_prefixes=tuple(of.exclude_resource_prefixes or ()),
        transformations=tuple(_transformation(rule) for rule in of.transformations or ()),
        ignore_undeclared=heed and of.quota_check_strategy == "IgnoreUndeclared",
    )


def _transformation(of: ResourceTransformation) -> Transformation:
    outputs = sorted((of.outputs or {}).items())
    return Transformation(
        input=of.input,
        outputs=tuple((name, parse(amount).nanos) for name, amount in outputs),
        strategy=TransformationStrategy(of.strategy),
        multiply_by=of.multiply_by,
    )


def _retention(of: Configuration) -> Retention:
    rules = of.object_retention_policies.workloads if of.object_retention_policies else None
    if rules is None:
        return Retention()
    return Retention(
        after_finished=rules.after_finished, after_deactivated=rules.after_deactivated_by_kueue
    )


def _frameworks(of: Configuration) -> tuple[str, ...]:
    named = of.integrations.frameworks if of.integrations is not None else None
    return _FRAMEWORKS if named is None else tuple(named)

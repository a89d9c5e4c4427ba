"""What must hold between the fields of a Configuration, as Kueue demands it. Each fault names its field."""

from collections import Counter
from collections.abc import Iterator

from app.core.policy import FairStrategy
from app.errors import FieldError
from app.intake.configuration.gates import KNOWN
from app.intake.configuration.model import Configuration, Resources
from app.intake.kinds.place import Place
from app.intake.kinds.selectors import selector_rules

KUBE_SYSTEM = "kube-system"

#: Every kind that Kueue has an integration for.
FRAMEWORKS = (
    "batch/job",
    "kubeflow.org/mpijob",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "ray.io/rayservice",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "kubeflow.org/jaxjob",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
    "sparkoperator.k8s.io/sparkapplication",
    "pod",
    "deployment",
    "statefulset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
)

_FINAL, _INITIAL = (
    FairStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
    FairStrategy.LESS_THAN_INITIAL_SHARE,
)
_STRATEGIES: tuple[list[str], ...] = ([_FINAL], [_INITIAL], [_FINAL, _INITIAL], [])


def faults(of: Configuration, written: Place) -> Iterator[FieldError]:
    """`written` is the file as the user wrote it."""
    yield from selector_rules(written.at("managedJobsNamespaceSelector"))
    yield from _integrations(written.at("integrations"))
    yield from _sharing(of, written)
    if of.resources is not None:
        yield from _resources(of.resources, written.at("resources"))
    for name in of.feature_gates or {}:
        if name not in KNOWN:
            yield FieldError(f"featureGates[{name}]", f"unknown feature gate {name!r}")


def _integrations(written: Place) -> Iterator[FieldError]:
    for name in ("frameworks", "externalFrameworks", "labelKeysToCopy"):
        yield from _duplicates(written, name)
    for framework in written.items("frameworks"):
        if framework.value not in FRAMEWORKS:
            yield framework.unsupported(FRAMEWORKS)


def _sharing(of: Configuration, written: Place) -> Iterator[FieldError]:
    strategies = of.fair_sharing.preemption_strategies if of.fair_sharing is not None else None
    if strategies is not None and list(strategies) not in _STRATEGIES:
        yield written.at("fairSharing", "preemptionStrategies").invalid(
            f"must be [{_FINAL}], [{_INITIAL}] or [{_FINAL}, {_INITIAL}]"
        )
    by_usage = of.admission_fair_sharing
    if by_usage is None:
        return
    place = written.at("admissionFairSharing")
    if not by_usage.usage_sampling_interval:
        yield place.at("usageSamplingInterval").invalid("must be greater than 0")
    for name, weight in place.entries("resourceWeights"):
        if not (by_usage.resource_weights or {})[name] >= 0:
            yield weight.invalid("must be greater than or equal to 0")


def _resources(of: Resources, written: Place) -> Iterator[FieldError]:
    inputs = Counter(rule.input for rule in of.transformations or ())
    for rule in written.items("transformations"):
        if inputs[rule.text("input")] > 1:
            yield rule.at("input").invalid("is transformed by another rule, too")
    if of.quota_check_strategy == "IgnoreUndeclared" and of.exclude_resource_prefixes:
        yield written.at("quotaCheckStrategy").invalid(
            "cannot be IgnoreUndeclared together with excludeResourcePrefixes"
        )


def _duplicates(written: Place, name: str) -> Iterator[FieldError]:
    seen = set()
    for item in written.items(name):
        if item.value in seen:
            yield FieldError(item.path, f"Duplicate value: {item.value!r}", "FieldValueDuplicate")
        seen.add(item.value)

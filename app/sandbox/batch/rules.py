"""Which Jobs, and which changes of a Job's spec, does kube-apiserver refuse?

From Kubernetes' batch validation and Job strategy (1.37). The rule that admission control lives by: the template of a
suspended Job may change its scheduling directives (labels, annotations, node selector, node affinity, tolerations,
scheduling gates) and container resources, but only while no pod is active and only if the Job never started or its
Suspended condition holds. Servers before 1.36 know neither the second alternative nor mutable resources: there
``status.startTime`` must have been cleared first. `Rules` says which of the two a cluster follows.

Not checked here: pod failure policies, success policies and per-index back-off.
"""

from dataclasses import dataclass
from typing import Any

from app.apiserver.encoding import copy
from app.core.manifests import Manifest
from app.errors import FieldError
from app.sandbox.batch import facts
from app.sandbox.faulty_fields import invalid, not_supported, required, unchanged
from app.sandbox.pods.faults import pod_faults

_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)
_MODES = ("NonIndexed", "Indexed")
_IMMUTABLE_LAST = (
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")
_MAX_INDEXED = 100_000


@dataclass(frozen=True, slots=True)
class Rules:
    """What differs between Kubernetes versions; `minor` is the 37 of 1.37."""

    minor: int = 37

    @property
    def suspended_condition_frees_template(self) -> bool:
        return self.minor >= 36

    @property
    def suspension_clears_start_time(self) -> bool:
        return self.minor >= 36


def job_faults(job: Manifest) -> list[FieldError]:
    """Return what is wrong with a defaulted Job in itself."""
    return [*_labels(job), *_spec(job["spec"]), *_selector(job["spec"]), *_indexed_name(job)]


def update_faults(new: Manifest, old: Manifest, rules: Rules) -> list[FieldError]:
    """Return what is wrong with the new spec, in itself and after the old one."""
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return []
    found = [*_spec(spec), *_selector(spec), *_completions(spec, before)]
    found += unchanged("spec.selector", spec.get("selector"), before.get("selector"))
    found += _template(new, old, rules)
    for field in _IMMUTABLE_LAST:
        found += unchanged(f"spec.{field}", spec.get(field), before.get(field))
    return [*found, *_indexed_name(new)]


def _labels(job: Manifest) -> list[FieldError]:
    """A generated selector needs the labels that were generated with it."""
    spec, metadata = job["spec"], job["metadata"]
    if spec["manualSelector"]:
        return []
    labels = spec["template"]["metadata"].get("labels") or {}
    wanted = {
        "controller-uid": metadata["uid"],
        "job-name": metadata["name"],
        facts.CONTROLLER_UID_LABEL: metadata["uid"],
        facts.JOB_NAME_LABEL: metadata["name"],
    }
    return [
        invalid("spec.template.metadata.labels", labels, f"must be '{value}'")
        if key in labels
        else required("spec.template.metadata.labels", f"must be '{value}'")
        for key, value in wanted.items()
        if labels.get(key) != value
    ]


def _spec(spec: dict[str, Any]) -> list[FieldError]:
    found = [
        invalid(f"spec.{name}", spec[name], "must be greater than or equal to 0")
        for name in _NUMBERS
        if isinstance(spec.get(name), int) and spec[name] < 0
    ]
    mode = spec.get("completionMode")
    if mode not in _MODES:
        found.append(not_supported("spec.completionMode", mode, _MODES))
    if mode == "Indexed":
        if spec.get("completions") is None:
            found.append(required("spec.completions", "when completion mode is Indexed"))
        if spec["parallelism"] > _MAX_INDEXED:
            limit = f"must be less than or equal to {_MAX_INDEXED} when completion mode is Indexed"
            found.append(invalid("spec.parallelism", spec["parallelism"], limit))
    return [*found, *_pod_template(spec["template"])]


def _pod_template(template: Manifest) -> list[FieldError]:
    found = pod_faults(template["spec"], "spec.template.spec")
    policy = template["spec"].get("restartPolicy")
    path = "spec.template.spec.restartPolicy"
    if policy in (None, "", "Always"):
        found.append(required(path, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        found.append(not_supported(path, policy, ("OnFailure", "Never")))
    return found


def _selector(spec: dict[str, Any]) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    labels = spec["template"]["metadata"].get("labels") or {}
    wanted = selector.get("matchLabels") or {}
    if all(labels.get(key) == value for key, value in wanted.items()):
        return []
    detail = "`selector` does not match template `labels`"
    return [invalid("spec.template.metadata.labels", labels, detail)]


def _indexed_name(job: Manifest) -> list[FieldError]:
    """The pods of an Indexed Job carry its name and their index as host name."""
    spec, name = job["spec"], job["metadata"]["name"]
    longest = f"{name}-{(spec.get('completions') or 1) - 1}"
    if not facts.indexed(job) or (len(longest) <= 63 and "." not in longest):
        return []
    detail = f"will not able to create pod with invalid DNS label: {longest}"
    return [invalid("metadata.name", name, detail)]


def _completions(spec: dict[str, Any], before: dict[str, Any]) -> list[FieldError]:
    new, old = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        return unchanged("spec.completions", new, old)
    if new in (old, None) or new == spec["parallelism"]:
        return []
    detail = "can only be modified in tandem with spec.parallelism"
    return [invalid("spec.completions", new, detail)]


def _template(new: Manifest, old: Manifest, rules: Rules) -> list[FieldError]:
    """Compare the templates after granting what may differ."""
    template, before = new["spec"]["template"], copy(old["spec"]["template"])
    if template == before:
        return []
    free = _template_is_free(old, rules)
    if free:
        _grant_directives(before, template)
    if not (free and rules.suspended_condition_frees_template):
        return unchanged("spec.template", template, before)
    _grant_resources(before["spec"], template["spec"])
    return unchanged("spec.template.spec", template["spec"], before["spec"])


def _template_is_free(job: Manifest, rules: Rules) -> bool:
    status = facts.status_of(job)
    never_started = status.get("startTime") is None
    if not rules.suspended_condition_frees_template:
        return facts.suspended(job) and never_started
    settled = never_started or facts.holds(status, "Suspended")
    return facts.suspended(job) and settled and not status.get("active")


def _grant_directives(before: Manifest, wanted: Manifest) -> None:
    for field in ("labels", "annotations"):
        _copy_field(before["metadata"], wanted["metadata"], field)
    for field in _DIRECTIVES:
        _copy_field(before["spec"], wanted["spec"], field)
    _grant_node_affinity(before["spec"], wanted["spec"])


def _grant_node_affinity(before: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Node affinity is free, the affinity between pods is not; an emptied affinity may vanish."""
    affinity = before.get("affinity") or {}
    _copy_field(affinity, wanted.get("affinity") or {}, "nodeAffinity")
    if affinity or wanted.get("affinity") is not None:
        before["affinity"] = affinity
    else:
        before.pop("affinity", None)


def _grant_resources(before: dict[str, Any], wanted: dict[str, Any]) -> None:
    for where in ("containers", "initContainers"):
        mine, theirs = before.get(where) or [], wanted.get(where) or []
        if len(mine) != len(theirs):
            continue
        for one, other in zip(mine, theirs, strict=True):
            if one.get("name") == other.get("name"):
                _copy_field(one, other, "resources")


def _copy_field(into: dict[str, Any], source: dict[str, Any], field: str) -> None:
    if field in source:
        into[field] = source[field]
    else:
        into.pop(field, None)

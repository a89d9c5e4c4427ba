"""Which admission webhooks want to see a write?

From Kubernetes' webhook predicates: rules name operations, groups, versions, resources (``jobs``, ``jobs/status``,
``jobs/*``, ``*/*``) and a scope; the namespace selector looks at the namespace's labels, the object selector at the new
or the old object's. ``matchConditions`` are not evaluated: a webhook that has some is called as if they held. Objects
are only offered in their storage version, so ``matchPolicy`` has nothing to decide.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.apiserver.kinds import Kind
from app.core.manifests import Manifest
from app.core.pods import requirements
from app.core.selectors import LabelSelector, Requirement
from app.sandbox.requests import Operation

_REGISTRATION_GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One webhook of a configuration."""

    kind: Literal["mutating", "validating"]
    spec: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def ignores_failures(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")

    @property
    def timeout_s(self) -> int:
        return int(self.spec.get("timeoutSeconds") or 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What rules are matched against."""

    kind: Kind
    operation: Operation
    subresource: str = ""


def rules_match(hook: Hook, seen: Seen) -> bool:
    if seen.kind.group == _REGISTRATION_GROUP:
        return False  # or a broken webhook could not be removed
    return any(_rule_matches(rule, seen) for rule in hook.spec.get("rules") or ())


def selectors_match(
    hook: Hook,
    namespace_labels: Mapping[str, str] | None,
    new: Manifest | None,
    old: Manifest | None,
) -> bool:
    """`namespace_labels` is None for an object that lives in no namespace."""
    of_namespace = label_selector(hook.spec.get("namespaceSelector"))
    if namespace_labels is not None and not of_namespace.matches(namespace_labels):
        return False
    of_object = label_selector(hook.spec.get("objectSelector"))
    return any(of_object.matches(_labels(one)) for one in (new, old) if one is not None)


def label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Read a label selector; an absent one matches everything here, as an empty one does."""
    selector = selector or {}
    exact = tuple(
        Requirement(key=key, operator="In", values=(value,))
        for key, value in (selector.get("matchLabels") or {}).items()
    )
    return LabelSelector(requirements=exact + requirements(selector.get("matchExpressions")))


def _rule_matches(rule: Mapping[str, Any], seen: Seen) -> bool:
    kind = seen.kind
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return (
        rule.get("scope", "*") in ("*", scope)
        and _listed(rule.get("operations"), seen.operation)
        and _listed(rule.get("apiGroups"), kind.group)
        and _listed(rule.get("apiVersions"), kind.version)
        and any(
            _resource_matches(one, kind.plural, seen.subresource)
            for one in rule.get("resources") or ()
        )
    )


def _listed(names: Any, name: str) -> bool:
    return "*" in (names or ()) or name in (names or ())


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, wanted = pattern.partition("/")
    return resource in ("*", plural) and (
        wanted == subresource or (wanted == "*" and "/" in pattern)
    )


def _labels(manifest: Manifest) -> Mapping[str, str]:
    labels: Mapping[str, str] = manifest["metadata"].get("labels") or {}
    return labels

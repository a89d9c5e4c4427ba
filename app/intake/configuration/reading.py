"""From the parsed file to a Policy: version, structure, rules, meaning; or one error with all faults.

No file is Kueue's defaults, and every framework that Sluice knows (a file that names none has Kueue's own default, the
batch Job alone). A section that is null counts as absent, as in every manifest.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from app.core.manifests import Manifest
from app.core.policy import Policy
from app.errors import FieldError, Misconfigured
from app.intake.configuration.conversion import V1BETA1, from_v1beta1
from app.intake.configuration.model import API_VERSION, Configuration
from app.intake.configuration.policy import managed_namespaces, policy_of, unused
from app.intake.configuration.rules import KUBE_SYSTEM, faults
from app.intake.kinds.faults import translated
from app.intake.kinds.openapi import structural
from app.intake.kinds.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    policy: Policy
    unused: tuple[str, ...] = ()
    """Paths that are in the file and have no effect here."""


def read(written: Any | None) -> Configured:
    """Raises Misconfigured, naming every wrong field."""
    if written is None:
        policy = policy_of(Configuration(apiVersion=API_VERSION, kind="Configuration"))
        return Configured(policy=replace(policy, managed=replace(policy.managed, frameworks=None)))
    if not isinstance(written, dict):
        raise Misconfigured("the configuration is not a map of fields")
    manifest, dropped = _current(written)
    found = _validated(manifest)
    rest = unused(Place(manifest))
    switched = () if written is manifest else ("featureGates.DisableWaitForPodsReady",)
    told = (*rest, *dropped)
    return Configured(
        policy=policy_of(found), unused=tuple(sorted(one for one in told if one not in switched))
    )


def _current(written: Manifest) -> tuple[Manifest, tuple[str, ...]]:
    manifest = {name: value for name, value in written.items() if value is not None}
    if manifest.get("apiVersion") == V1BETA1:
        return from_v1beta1(manifest)
    return manifest, ()


def _validated(manifest: Manifest) -> Configuration:
    try:
        found = Configuration.model_validate(manifest)
    except ValidationError as error:
        raise _refused(translated(error.errors(), structural(Configuration))) from None
    wrong = [*faults(found, Place(manifest)), *_too_wide(found)]
    if wrong:
        raise _refused(wrong)
    return found


def _too_wide(found: Configuration) -> Iterable[FieldError]:
    """Gating our own namespace, or the cluster's, would stop what starts everybody else."""
    selector = managed_namespaces(found)
    for name in dict.fromkeys((KUBE_SYSTEM, found.namespace)):
        if selector.matches({"kubernetes.io/metadata.name": name}):
            yield FieldError(
                "managedJobsNamespaceSelector", f"must not match the namespace {name!r}"
            )


def _refused(found: Iterable[FieldError]) -> Misconfigured:
    told = "; ".join(f"{fault.path}: {fault.message}" for fault in found)
    return Misconfigured(f"the configuration is wrong: {told}")

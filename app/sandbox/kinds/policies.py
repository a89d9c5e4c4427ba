"""What does the simulated API know of webhook configurations, priority classes and leases?"""

from typing import Any

from app.apiserver.kinds import AGE, Column, Kind
from app.core.manifests import Manifest
from app.errors import FieldError, Invalid
from app.sandbox.faulty_fields import not_supported, required
from app.sandbox.kinds.schema import anything, keyed, number, text

_WEBHOOK_DEFAULTS: dict[str, Any] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}


_SIDE_EFFECTS = ("None", "NoneOnDryRun")  # so that every webhook may be asked about a dry run


def _prepare_mutating(new: Manifest, old: Manifest | None) -> Manifest:
    for hook in new.get("webhooks") or ():
        hook.setdefault("reinvocationPolicy", "Never")
    return _prepare_webhooks(new, old)


def _prepare_webhooks(new: Manifest, _: Manifest | None) -> Manifest:
    faults: list[FieldError] = []
    for index, hook in enumerate(new.get("webhooks") or ()):
        for field, value in _WEBHOOK_DEFAULTS.items():
            hook.setdefault(field, value)
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        path = f"webhooks[{index}]"
        faults += [
            required(f"{path}.{field}")
            for field in ("name", "clientConfig", "sideEffects", "admissionReviewVersions")
            if not hook.get(field)
        ]
        effects = hook.get("sideEffects")
        if effects and effects not in _SIDE_EFFECTS:
            faults.append(not_supported(f"{path}.sideEffects", effects, _SIDE_EFFECTS))
    if faults:
        raise Invalid("the webhook configuration is invalid", faults)
    return new


def _webhook_kind(kind: str, prepare: Any) -> Kind:
    plural = f"{kind.lower()}s"
    return Kind(
        group="admissionregistration.k8s.io",
        version="v1",
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=False,
        status=False,
        categories=("api-extensions",),
        columns=(
            Column(
                name="Webhooks", cell=lambda one: len(one.get("webhooks") or ()), type="integer"
            ),
            AGE,
        ),
        schema=anything(
            "Which webhooks are asked about which writes.",
            webhooks=keyed("The webhooks, asked in this order.", "name"),
        ),
        prepare=prepare,
        preserve_unknown=True,
        unconditional_update=True,
    )


MUTATING_WEBHOOKS = _webhook_kind("MutatingWebhookConfiguration", _prepare_mutating)
VALIDATING_WEBHOOKS = _webhook_kind("ValidatingWebhookConfiguration", _prepare_webhooks)


def _prepare_priority_class(new: Manifest, _: Manifest | None) -> Manifest:
    new.setdefault("preemptionPolicy", "PreemptLowerPriority")
    if new.get("value") is None:
        new["value"] = 0
    return new


PRIORITY_CLASS = Kind(
    group="scheduling.k8s.io",
    version="v1",
    kind="PriorityClass",
    plural="priorityclasses",
    singular="priorityclass",
    namespaced=False,
    short_names=("pc",),
    status=False,
    columns=(
        Column(name="Value", cell=lambda one: one.get("value", 0), type="integer"),
        Column(
            name="Global-Default", cell=lambda one: bool(one.get("globalDefault")), type="boolean"
        ),
        AGE,
        Column(name="PreemptionPolicy", cell=lambda one: one.get("preemptionPolicy") or ""),
    ),
    schema=anything("A name for a priority of pods.", value=number("The higher, the earlier.")),
    prepare=_prepare_priority_class,
    preserve_unknown=True,
    unconditional_update=True,
)

LEASE = Kind(
    group="coordination.k8s.io",
    version="v1",
    kind="Lease",
    plural="leases",
    singular="lease",
    namespaced=True,
    status=False,
    columns=(
        Column(name="Holder", cell=lambda one: (one.get("spec") or {}).get("holderIdentity") or ""),
        AGE,
    ),
    schema=anything(
        "Who holds something, until when.",
        spec=anything("The lease.", holderIdentity=text("Who holds it.")),
    ),
    preserve_unknown=True,
    unconditional_update=True,
)

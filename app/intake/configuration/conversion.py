"""A ``v1beta1`` Configuration as the ``v1beta2`` one that means the same.

Three sections had a switch of their own. Where `waitForPodsReady` was off, or absent, it stays off: in v1beta2 only a
feature gate can say so. Where it was on, admission was blocked and recovery waited for for ever unless told otherwise.
What v1beta2 has no place for (the queue visibility and pod options of v1beta1) is left out and named as unused.
"""

from app.core.manifests import Manifest
from app.intake.configuration.model import API_VERSION

V1BETA1 = "config.kueue.x-k8s.io/v1beta1"


def from_v1beta1(old: Manifest) -> tuple[Manifest, tuple[str, ...]]:
    """The converted file, and the paths of what was left out. Sections of a wrong type are left for the checks."""
    new = {**old, "apiVersion": API_VERSION}
    dropped = ["queueVisibility"] if new.pop("queueVisibility", None) is not None else []
    _integrations(new, dropped)
    _pods_ready(new)
    _fair_sharing(new)
    return new, tuple(dropped)


def _integrations(new: Manifest, dropped: list[str]) -> None:
    section = new.get("integrations")
    if isinstance(section, dict) and "podOptions" in section:
        new["integrations"] = {k: v for k, v in section.items() if k != "podOptions"}
        dropped.append("integrations.podOptions")


def _pods_ready(new: Manifest) -> None:
    section = new.get("waitForPodsReady")
    if section is not None and not isinstance(section, dict):
        return
    section = dict(section or {})
    if section.pop("enable", False) is True:
        new["waitForPodsReady"] = {"blockAdmission": True, "recoveryTimeout": "0s", **section}
        return
    gates = new.get("featureGates")
    new.pop("waitForPodsReady", None)
    if gates is None or isinstance(gates, dict):
        new["featureGates"] = {**(gates or {}), "DisableWaitForPodsReady": True}


def _fair_sharing(new: Manifest) -> None:
    section = new.get("fairSharing")
    if not isinstance(section, dict):
        return
    section = dict(section)
    if section.pop("enable", False) is True:
        new["fairSharing"] = section
    else:
        del new["fairSharing"]

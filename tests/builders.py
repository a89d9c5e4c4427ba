"""Manifests in one line: keyword functions with defaults, as a user would write them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from app.core.cycle import schedule
from app.core.decisions import CycleResult
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.policy import DEFAULT, Policy

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def flavor(name: str = "default", **spec: Any) -> Manifest:
    return {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def groups(quota: dict[str, dict[str, Any]]) -> list[Manifest]:
    """Resource groups from ``{flavor: {resource: nominal | (nominal, borrowing, lending)}}``."""
    resources = list(next(iter(quota.values()), {}))
    flavors = [
        {"name": name, "resources": [_quota(r, of[r]) for r in resources]}
        for name, of in quota.items()
    ]
    return [{"coveredResources": resources, "flavors": flavors}] if quota else []


def cluster_queue(
    name: str, quota: dict[str, dict[str, Any]], *, cohort: str | None = None, **spec: Any
) -> Manifest:
    spec = {"namespaceSelector": {}, "resourceGroups": groups(quota), **spec}
    if cohort is not None:
        spec["cohortName"] = cohort
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def cohort(
    name: str, parent: str | None = None, quota: dict[str, dict[str, Any]] | None = None
) -> Manifest:
    spec: Manifest = {"resourceGroups": groups(quota or {})}
    if parent is not None:
        spec["parentName"] = parent
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def local_queue(name: str, queue: str, **spec: Any) -> Manifest:
    return {
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterQueue": queue, **spec},
    }


def workload(
    name: str,
    queue: str = "main",
    *,
    age: int = 0,
    pods: int = 1,
    status: Manifest | None = None,
    template: Manifest | None = None,
    pod_set: Manifest | None = None,
    **more: Any,
) -> Manifest:
    """A workload of one pod set; resources by keyword (``cpu="1"``), anything else goes into the spec."""
    requests = {key: more.pop(key) for key in ("cpu", "memory", "gpu") if key in more}
    shape = {"containers": [{"name": "c", "resources": {"requests": requests}}], **(template or {})}
    created = NOW - timedelta(seconds=age)
    return {
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "spec": {
            "queueName": queue,
            "podSets": [
                {"name": "main", "count": pods, "template": {"spec": shape}, **(pod_set or {})}
            ],
            **more,
        },
        **({"status": status} if status else {}),
    }


def image(*manifests: Manifest) -> Image:
    return Image.load([parse(manifest) for manifest in manifests])


def run(of: Image, policy: Policy = DEFAULT, *, after: int = 0) -> CycleResult:
    """One cycle whose outcome is made true."""
    result = schedule(of, policy, NOW + timedelta(seconds=after))
    of.finish_cycle(result)
    return result


def admitted(result: CycleResult) -> list[str]:
    return [one.name for one in result.admissions]


def reasons(result: CycleResult) -> dict[str, str]:
    return {one.name: str(one.explanation.reason) for one in result.pending}


def _quota(resource: str, amounts: Any) -> Manifest:
    given = amounts if isinstance(amounts, tuple) else (amounts,)
    nominal, borrowing, lending = (*given, None, None)[:3]
    item: Manifest = {"name": resource, "nominalQuota": nominal}
    if borrowing is not None:
        item["borrowingLimit"] = borrowing
    if lending is not None:
        item["lendingLimit"] = lending
    return item

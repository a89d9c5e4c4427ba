"""What people write: quota and jobs, as short as a test can say it."""

from collections.abc import Mapping
from typing import Any

from tests.cluster.admin import Object

API_VERSION = "kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
FOREVER = "forever"


def flavor(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Object:
    return _ours("ResourceFlavor", name, spec={"nodeLabels": dict(labels or {}), **spec})


def cluster_queue(
    name: str, quotas: Mapping[str, str | Mapping[str, str]], cohort: str = "", **spec: Any
) -> Object:
    """`quotas` gives cpu for each flavor: the nominal quota, or all of its fields."""
    flavors = [{"name": one, "resources": [_quota(quota)]} for one, quota in quotas.items()]
    return _ours(
        "ClusterQueue",
        name,
        spec={
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            **({"cohortName": cohort} if cohort else {}),
            **spec,
        },
    )


def local_queue(namespace: str, name: str, cluster_queue: str, **spec: Any) -> Object:
    made = _ours("LocalQueue", name, spec={"clusterQueue": cluster_queue, **spec})
    made["metadata"]["namespace"] = namespace
    return made


def priority_class(name: str, value: int) -> Object:
    return _ours("WorkloadPriorityClass", name, value=value)


def job(
    name: str,
    queue: str | None,
    *,
    pods: int = 1,
    completions: int | None = None,
    cpu: str = "1",
    runs_s: str = "0.5",
    suspend: bool | None = True,
    priority: str | None = None,
    stops_s: str = "0",
    **pod_spec: Any,
) -> Object:
    """A Job whose pods each run for a while and end well; `suspend` is left out when it is None."""
    labels = {"app": "train"}
    if queue is not None:
        labels[QUEUE] = queue
    if priority is not None:
        labels[PRIORITY] = priority
    life = {"sluice.dev/run-seconds": runs_s, "sluice.dev/stop-seconds": stops_s}
    container = {
        "name": "main",
        "image": "registry.invalid/train",
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            **({} if suspend is None else {"suspend": suspend}),
            "parallelism": pods,
            "completions": pods if completions is None else completions,
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": {"app": "train"}, "annotations": life},
                "spec": {"restartPolicy": "Never", "containers": [container], **pod_spec},
            },
        },
    }


def _ours(kind: str, name: str, **content: Any) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, **content}


def _quota(quota: str | Mapping[str, str]) -> Object:
    return {"name": "cpu", **({"nominalQuota": quota} if isinstance(quota, str) else quota)}

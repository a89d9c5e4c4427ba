"""One long conversation with a cluster, written down so that two clusters can be compared.

What differs from run to run (uids, times, random name endings, versions) is replaced by a placeholder; the order of
conditions does not count.
"""

import asyncio
import re
from collections.abc import Awaitable
from typing import Any

from tests.sandbox.client import (
    FOREVER,
    JOBS,
    PODS,
    Answer,
    Client,
    condition,
    is_true,
    job,
    pod,
)

Record = dict[str, Any]

NAMESPACES = "/api/v1/namespaces"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_ENDING = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_FLEETING = ("managedFields", "resourceVersion", "selfLink")


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in _FLEETING}
    if isinstance(value, list):
        items = [plain(one) for one in value]
        typed = items and all(isinstance(one, dict) and "type" in one for one in items)
        return sorted(items, key=lambda one: str(one["type"])) if typed else items
    if isinstance(value, str):
        return _ENDING.sub("-<ending>", _UID.sub("<uid>", _TIME.sub("<time>", value)))
    return value


class Notes:
    def __init__(self) -> None:
        self.record: Record = {}

    async def take(self, name: str, call: Awaitable[Answer]) -> None:
        answer = await call
        self.record[name] = {"status": answer.status, "body": plain(answer.body)}


async def converse(client: Client) -> Record:
    notes = Notes()
    for topic in (suspended_job, running_job, stopped_job, failed_job, indexed_job, bad_jobs):
        await topic(client, notes)
        await clear(client)
    for topic in (gated_pod, refused_pods, stuck_pod, deleted_pod, namespaces, webhooks):
        await topic(client, notes)
    return notes.record


async def clear(client: Client) -> None:
    for one in await client.items(JOBS):
        name = one["metadata"]["name"]
        await client.call("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Background"})
    for one in await client.items(PODS):
        await client.call("DELETE", f"{PODS}/{one['metadata']['name']}")
    await client.until(PODS, lambda found: not found["items"])


async def suspended_job(client: Client, notes: Notes) -> None:
    path = f"{JOBS}/held"
    await notes.take("a job is created", client.call("POST", JOBS, job("held", suspend=True)))
    await client.until(path, is_true("Suspended"))
    await notes.take("a job is suspended", client.call("GET", path))
    changes: dict[str, Any] = {
        "completions": {"completions": 5},
        "completion mode": {"completionMode": "Indexed"},
        "negative parallelism": {"parallelism": -1},
        "manager": {"managedBy": "example.com/other"},
        "image": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}},
        "selector": {"selector": {"matchLabels": {"a": "b"}}},
    }
    for name, change in changes.items():
        await notes.take(f"refused: {name}", client.patch(path, {"spec": change}))
    directions = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
    }
    await notes.take("directed", client.patch(path, {"spec": {"template": directions}}))
    early = {"status": {"ready": 7}}
    await notes.take("refused: ready", client.patch(f"{path}/status", early))
    stale = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
    await notes.take("refused: stale", client.patch(path, stale))
    await notes.take("refused: twice", client.call("POST", JOBS, job("held")))
    await notes.take("missing", client.call("GET", f"{JOBS}/nope"))


async def running_job(client: Client, notes: Notes) -> None:
    path = f"{JOBS}/run"
    await client.create(JOBS, job("run"))
    await client.until(path, lambda found: found["status"].get("ready") == 1)
    await notes.take("a job runs", client.call("GET", path))
    moved = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    await notes.take("refused: template", client.patch(path, moved))
    await notes.take(
        "refused: start", client.patch(f"{path}/status", {"status": {"startTime": None}})
    )
    await client.until(path, is_true("Complete"))
    await notes.take("a job is complete", client.call("GET", path))
    await client.until(PODS, lambda found: "finalizers" not in found["items"][0]["metadata"])
    await notes.take("its pods", client.call("GET", PODS))
    await notes.take(
        "refused: undone", client.patch(f"{path}/status", {"status": {"conditions": []}})
    )


async def stopped_job(client: Client, notes: Notes) -> None:
    path = f"{JOBS}/stop"
    await client.create(JOBS, job("stop", FOREVER, parallelism=2, completions=2))
    await client.until(path, lambda found: found["status"].get("ready") == 2)
    await client.patch(path, {"spec": {"suspend": True}})
    await client.until(path, is_true("Suspended"))
    await client.until(PODS, lambda found: not found["items"])
    await client.until(path, lambda found: found["status"].get("terminating") == 0)
    await notes.take("a job has stopped", client.call("GET", path))
    restored = {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}}}}
    await notes.take("restored", client.patch(path, restored))
    await client.patch(path, {"spec": {"suspend": False}})
    await client.until(path, lambda found: found["status"].get("ready") == 2)
    await notes.take("a job goes on", client.call("GET", path))
    await notes.take("a running job is orphaned", client.call("DELETE", path))
    await client.until_gone(path)
    await notes.take("orphans", client.call("GET", PODS))


async def failed_job(client: Client, notes: Notes) -> None:
    ends = {"sluice.dev/exit-code": "1", "sluice.dev/run-seconds": "0.2"}
    await client.create(JOBS, job("fail", ends, backoffLimit=0))
    await client.until(f"{JOBS}/fail", is_true("Failed"))
    await notes.take("a job has failed", client.call("GET", f"{JOBS}/fail"))


async def indexed_job(client: Client, notes: Notes) -> None:
    path, size = f"{JOBS}/index", {"completionMode": "Indexed", "parallelism": 2, "completions": 2}
    await client.create(JOBS, job("index", FOREVER, **size))
    await client.until(path, lambda found: found["status"].get("ready") == 2)
    await notes.take("an indexed job runs", client.call("GET", path))
    await notes.take("refused: alone", client.patch(path, {"spec": {"completions": 3}}))
    await notes.take("shrunk", client.patch(path, {"spec": {"completions": 1, "parallelism": 1}}))


async def bad_jobs(client: Client, notes: Notes) -> None:
    gpu = {"name": "m", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "2"}}}
    bad = {
        "restart policy": job(pod={"restartPolicy": "Always"}),
        "no containers": job(pod={"containers": []}),
        "unknown mode": job(completionMode="Sometimes"),
        "indexed without size": job(completionMode="Indexed", parallelism=2),
        "no limit": job(pod={"containers": [gpu]}),
    }
    for name, manifest in bad.items():
        await notes.take(f"refused: {name}", client.call("POST", JOBS, manifest))
    nowhere = "/apis/batch/v1/namespaces/nowhere/jobs"
    await notes.take("refused: nowhere", client.call("POST", nowhere, job()))


async def gated_pod(client: Client, notes: Notes) -> None:
    path = f"{PODS}/gated"
    gates = [{"name": "example.com/wait"}]
    made = pod("gated", {"a": "b"}, schedulingGates=gates)
    await notes.take("a pod is gated", client.call("POST", PODS, made))
    selector = {"kubernetes.io/os": "linux"}
    await notes.take("aimed", client.patch(path, {"spec": {"nodeSelector": selector}}))
    other = {"spec": {"nodeSelector": {"kubernetes.io/os": "plan9"}}}
    await notes.take("refused: aimed elsewhere", client.patch(path, other))
    more = {"spec": {"schedulingGates": [*gates, {"name": "example.com/more"}]}}
    await notes.take("refused: gate", client.patch(path, more))
    await notes.take("ungated", client.patch(path, {"spec": {"schedulingGates": []}}))
    await client.until(path, lambda found: found["status"]["phase"] == "Succeeded")
    await notes.take("a pod has ended", client.call("GET", path))


async def refused_pods(client: Client, notes: Notes) -> None:
    def asking(requests: dict[str, str], limits: dict[str, str]) -> Any:
        container = {
            "name": "m",
            "image": "x",
            "resources": {"requests": requests, "limits": limits},
        }
        return pod("bad", containers=[container])

    bad = {
        "unequal limit": asking({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "3"}),
        "small limit": asking({"cpu": "2"}, {"cpu": "1"}),
        "nameless": pod("bad", containers=[{"name": "m"}, {"image": "x"}]),
        "unknown class": pod("bad", priorityClassName="nope"),
    }
    for name, manifest in bad.items():
        await notes.take(f"refused: {name}", client.call("POST", PODS, manifest))


async def stuck_pod(client: Client, notes: Notes) -> None:
    made = pod("big", requests={"nvidia.com/gpu": "1000"})
    await notes.take("a pod is large", client.call("POST", PODS, made))
    await client.until(f"{PODS}/big", lambda found: condition(found, "PodScheduled") == "False")
    await notes.take("a pod is stuck", client.call("GET", f"{PODS}/big"))


async def deleted_pod(client: Client, notes: Notes) -> None:
    path = f"{PODS}/leaving"
    await client.create(PODS, pod("leaving", {**FOREVER, "sluice.dev/stop-seconds": "0.5"}))
    await client.until(path, lambda found: found["status"].get("phase") == "Running")
    await notes.take("a pod is told to stop", client.call("DELETE", path))
    await notes.take("it has not stopped yet", client.call("GET", path))
    await client.until_gone(path)


async def namespaces(client: Client, notes: Notes) -> None:
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    await notes.take("a namespace is made", client.call("POST", NAMESPACES, team))
    held = job("held", metadata={"finalizers": ["example.com/hold"]}, suspend=True)
    await client.create("/apis/batch/v1/namespaces/team/jobs", held)
    await notes.take("a namespace is deleted", client.call("DELETE", f"{NAMESPACES}/team"))
    late = client.call("POST", "/apis/batch/v1/namespaces/team/jobs", job("late"))
    await notes.take("refused: late", late)
    await notes.take("refused: default", client.call("DELETE", f"{NAMESPACES}/default"))


async def webhooks(client: Client, notes: Notes) -> None:
    hook: dict[str, Any] = {
        "name": "down.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": ["batch"],
                "apiVersions": ["v1"],
                "resources": ["jobs"],
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "down"},
    }
    bad = {**configuration, "webhooks": [{**hook, "sideEffects": "Some"}]}
    await notes.take("refused: side effects", client.call("POST", WEBHOOKS, bad))
    made = {**configuration, "webhooks": [hook]}
    await notes.take("a webhook is registered", client.call("POST", WEBHOOKS, made))
    await asyncio.sleep(1.5)  # a real API server takes a moment to know of it
    await notes.take("refused: webhook", client.call("POST", JOBS, job("late")))

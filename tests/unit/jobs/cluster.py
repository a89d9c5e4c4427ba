"""The little of an apiserver and a Job controller that batch Jobs need to be started and stopped in a test.

Both are pure functions of a manifest. The apiserver's half applies patches under the rules that the real one has:
uid and resourceVersion must match, and the template may change only while suspended without a startTime. The contract
suite runs the same patches against a real apiserver.
"""

import copy
from typing import Any

from app.core.manifests import Manifest
from app.jobs.patches import Patch

NOW = "2026-01-01T00:00:00Z"


class Refused(Exception):
    def __init__(self, code: int, why: str) -> None:
        super().__init__(f"{code} {why}")
        self.code = code


def job(spec: Manifest | None = None, **metadata: Any) -> Manifest:
    """A suspended Job of three pods, as the apiserver shows it."""
    meta = {
        "name": "train",
        "namespace": "team-a",
        "uid": "job-uid-1",
        "resourceVersion": "1",
        "labels": {"kueue.x-k8s.io/queue-name": "queue"},
        **metadata,
    }
    body: Manifest = {
        "suspend": True,
        "parallelism": 3,
        "completions": 3,
        "template": template(),
        **(spec or {}),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body, "status": {}}


def template(metadata: Manifest | None = None, **spec: Any) -> Manifest:
    return {
        "metadata": {"labels": {"job-name": "train", "app": "x"}} if metadata is None else metadata,
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                }
            ],
            "restartPolicy": "Never",
            **spec,
        },
    }


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def write(live: Manifest, patch: Patch) -> Manifest:
    """What the apiserver answers to `patch`."""
    assert patch.type == "merge"
    new: Manifest = merged(copy.deepcopy(live), patch.body)
    for field in ("uid", "resourceVersion"):
        if new["metadata"][field] != live["metadata"][field]:
            raise Refused(409, f"{field} is {live['metadata'][field]}")
    if patch.subresource == "status":
        new["spec"] = live["spec"]
        if live["spec"]["suspend"] is not True:
            raise Refused(422, "startTime may not change while running")
    else:
        assert patch.subresource is None
        new["status"] = live["status"]
        mutable = live["spec"]["suspend"] is True and "startTime" not in live["status"]
        if new["spec"]["template"] != live["spec"]["template"] and not mutable:
            raise Refused(422, "the template is immutable")
    if new != live:
        new["metadata"]["resourceVersion"] = str(int(live["metadata"]["resourceVersion"]) + 1)
    return new


def settled(live: Manifest, *, active: int | None = None) -> Manifest:
    """What the Job controller makes of it: pods and startTime when running, the Suspended condition when not."""
    new = copy.deepcopy(live)
    suspended = new["spec"].get("suspend") is True
    pods = 0 if suspended else new["spec"].get("parallelism", 1)
    status = new["status"]
    status["active"] = pods if active is None else active
    status["conditions"] = [{"type": "Suspended", "status": "True" if suspended else "False"}]
    if not suspended:
        status.setdefault("startTime", NOW)
    if new != live:
        new["metadata"]["resourceVersion"] = str(int(live["metadata"]["resourceVersion"]) + 1)
    return new

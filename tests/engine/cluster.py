"""The Jobs of a cluster in memory, with the calls that the stepper makes of a cluster's client.

What the API server and the Job controller do to a Job is that of the adapter's own tests; nothing here decides when.
"""

import copy
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from app.core.manifests import Manifest
from app.errors import Conflict, NotFound
from app.jobs.patches import Patch
from app.kube.client import EVERYTHING, Selection
from app.kube.resources import Resource
from tests.unit.jobs import cluster as rules


class Jobs:
    """By name; all in one namespace."""

    def __init__(self) -> None:
        self.live: dict[str, Manifest] = {}

    def submit(self, name: str, **spec: Any) -> Manifest:
        """A suspended Job for the LocalQueue `main`; `annotations` and `labels` go into its metadata."""
        number = len(self.live) + 1
        labels = {"kueue.x-k8s.io/queue-name": "main", **spec.pop("labels", {})}
        made = rules.job(
            spec,
            name=name,
            uid=f"job-{name}",
            labels=labels,
            annotations=spec.pop("annotations", {}),
            creationTimestamp=f"2026-01-01T00:00:{number:02d}Z",
        )
        made["spec"]["template"]["metadata"] = {}
        self.live[name] = rules.settled(made)
        return self.live[name]

    def controller(self) -> None:
        """The Job controller has its turn: pods are made, or gone."""
        self.live = {name: rules.settled(job) for name, job in self.live.items()}

    def report(self, name: str, **status: Any) -> None:
        """Pods became ready, failed or finished."""
        job = copy.deepcopy(self.live[name])
        job["status"].update(status)
        job["metadata"]["resourceVersion"] = str(int(job["metadata"]["resourceVersion"]) + 1)
        self.live[name] = job

    def running(self) -> list[str]:
        return [name for name, job in self.live.items() if not job["spec"]["suspend"]]

    # The client's part

    async def get(self, _: Resource, namespace: str | None, name: str) -> Manifest:
        if name not in self.live:
            raise NotFound(f"no job {namespace}/{name}")
        return self.live[name]

    async def list(self, _: Resource, __: Selection = EVERYTHING) -> SimpleNamespace:
        return SimpleNamespace(items=[])

    async def patch(
        self,
        _: Resource,
        __: str | None,
        name: str,
        body: Any,
        *,
        patch_type: str = "merge",
        subresource: str | None = None,
    ) -> Manifest:
        assert patch_type == "merge"
        try:
            self.live[name] = rules.write(
                self.live[name], Patch(body=body, subresource=subresource)
            )
        except rules.Refused as refusal:
            raise Conflict(str(refusal)) from None
        return self.live[name]

    async def delete(
        self, _: Resource, __: str | None, name: str, *, uid: str | None = None
    ) -> None:
        assert self.live.pop(name)["metadata"]["uid"] == uid

    def all(self) -> Iterable[Manifest]:
        return list(self.live.values())

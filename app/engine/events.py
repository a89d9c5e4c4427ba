"""Tells a job's owner in words what happened: Kubernetes Events on the job, by best effort.

Events wait in a bounded queue and are posted one after the other; when the cluster does not take them they are
dropped, because nothing may ever wait for a message. Reasons are Kueue's.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime

import structlog

from app.core.manifests import Manifest
from app.errors import AppError
from app.kube.client import KubeClient
from app.kube.resources import EVENTS

log = structlog.get_logger("engine.events")

CONTROLLER = "sluice.dev/controller"
WAITING_LIMIT = 1000
NOTE_LIMIT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRef:
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, job: Manifest) -> "JobRef":
        metadata = job["metadata"]
        return cls(
            api_version=job["apiVersion"],
            kind=job["kind"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
        )


class Recorder:
    """`say` never waits and never fails; `run` posts until it is cancelled."""

    def __init__(self, client: KubeClient, instance: str) -> None:
        self._client = client
        self._instance = instance
        self._waiting: asyncio.Queue[Manifest] = asyncio.Queue(WAITING_LIMIT)
        self._said = 0

    def say(
        self, job: JobRef, reason: str, note: str, now: datetime, *, warning: bool = False
    ) -> None:
        self._said += 1
        event = self._event(job, reason, note, now)
        event["type"] = "Warning" if warning else "Normal"
        if not self._waiting.full():
            self._waiting.put_nowait(event)

    async def run(self) -> None:
        while True:
            event = await self._waiting.get()
            try:
                await self._client.create(EVENTS, event["metadata"]["namespace"], event)
            except AppError as error:
                log.debug("event.dropped", reason=event["reason"], error=error.message)

    def _event(self, job: JobRef, reason: str, note: str, now: datetime) -> Manifest:
        unique = f"{int(now.timestamp() * 1_000_000):x}{self._said:x}"
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{job.name[:200]}.{unique}", "namespace": job.namespace},
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance[:128],
            "action": reason,
            "reason": reason,
            "note": note[:NOTE_LIMIT],
            "regarding": {
                "apiVersion": job.api_version,
                "kind": job.kind,
                "namespace": job.namespace,
                "name": job.name,
                "uid": job.uid,
            },
        }

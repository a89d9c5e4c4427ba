"""The loop that lets bound pods start, run, end and stop: one kubelet for all nodes.

Each pod has at most one timer, for the end of its present stage. A stage begins when the kubelet sees it; durations are
divided by the cluster's speed. Pods of a node that is gone are removed, and nodes that a test calls broken are
NotReady.
"""

import asyncio
from dataclasses import dataclass

from app.core.manifests import Manifest
from app.sandbox import annotations
from app.sandbox.batch import facts
from app.sandbox.informer import Informer, Key, key_of
from app.sandbox.nodes.life import Habits, Stage, next_step, over, running
from app.sandbox.nodes.make import node_status
from app.sandbox.requests import DeleteOptions
from app.sandbox.work import WorkQueue
from app.sandbox.writer import Writer

_AT_ONCE = DeleteOptions(grace_period_s=0, propagation="Background")


@dataclass(frozen=True, slots=True)
class _Since:
    """When a pod entered its present stage, by the loop's clock."""

    uid: str
    stage: Stage
    at: float


class Kubelet:
    def __init__(
        self, writer: Writer, nodes: Informer, pods: Informer, *, habits: Habits, speed: float
    ) -> None:
        self.pod_queue: WorkQueue[Key] = WorkQueue("pods")
        self.node_queue: WorkQueue[Key] = WorkQueue("nodes")
        self._writer = writer
        self._nodes = nodes
        self._pods = pods
        self._habits = habits
        self._speed = speed
        self._since: dict[Key, _Since] = {}
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    def _node_changed(self, new: Manifest | None, old: Manifest | None) -> None:
        if new is not None:
            self.node_queue.add(key_of(new))
        elif old is not None:
            self._orphan(old["metadata"]["name"])

    def _orphan(self, node: str) -> None:
        for key, pod in self._pods.objects.items():
            if pod["spec"].get("nodeName") == node:
                self.pod_queue.add(key)

    def _pod_changed(self, new: Manifest | None, old: Manifest | None) -> None:
        if new is not None:
            if new["spec"].get("nodeName"):
                self.pod_queue.add(key_of(new))
        elif old is not None:
            self._since.pop(key_of(old), None)

    async def sync_node(self, key: Key) -> None:
        node = self._nodes.objects.get(key)
        if node is not None:
            ready = annotations.annotation(node, annotations.BROKEN) != "true"
            status = node_status(node, ready=ready, now=self._writer.clock())
            await self._writer.set_status(self._nodes.kind, node, status)

    async def sync_pod(self, key: Key) -> None:
        pod = self._pods.objects.get(key)
        if pod is None:
            return
        if ("", pod["spec"].get("nodeName") or "") not in self._nodes.objects:
            await self._lost(pod)
            return
        step = next_step(pod, self._habits)
        if step is None:
            self._since.pop(key, None)
            return
        left_s = self._left_s(key, pod, step.stage, step.lasts_s)
        if left_s is None:
            return
        if left_s > 0:
            self.pod_queue.add_later(key, left_s)
        else:
            await self._end_stage(pod, step.stage)

    def _left_s(self, key: Key, pod: Manifest, stage: Stage, lasts_s: float | None) -> float | None:
        now, uid = asyncio.get_running_loop().time(), pod["metadata"]["uid"]
        since = self._since.get(key)
        if since is None or (since.uid, since.stage) != (uid, stage):
            since = self._since[key] = _Since(uid, stage, now)
        return None if lasts_s is None else since.at + lasts_s / self._speed - now

    async def _end_stage(self, pod: Manifest, stage: Stage) -> None:
        now, kind = self._writer.clock(), self._pods.kind
        if stage == "starting":
            await self._writer.set_status(kind, pod, running(pod, now))
        elif stage == "running":
            await self._writer.set_status(kind, pod, over(pod, now))
        else:
            await self._let_go(pod)

    async def _let_go(self, pod: Manifest) -> None:
        """A stopped pod goes at once, or shows how it ended until its finalizers are off."""
        if pod["metadata"].get("finalizers") and not facts.ended(pod):
            status = over(pod, self._writer.clock())
            await self._writer.set_status(self._pods.kind, pod, status)
        await self._writer.delete(self._pods.kind, pod, _AT_ONCE)

    async def _lost(self, pod: Manifest) -> None:
        """As the pod collector does: the pod of a vanished node has failed, and goes."""
        if not facts.ended(pod):
            status = {**over(pod, self._writer.clock()), "phase": "Failed", "reason": "NodeLost"}
            await self._writer.set_status(self._pods.kind, pod, status)
        await self._writer.delete(self._pods.kind, pod, _AT_ONCE)

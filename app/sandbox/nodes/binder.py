"""Which pending pod goes to which node?

First fit in the order of the nodes' names, pods by priority and age: just enough that pods run where they may. It is
no scheduler: no scores, no spreading, no preemption, and it looks only when something changed. A pod that fits nowhere
stays Pending and its PodScheduled condition says why; one with scheduling gates is left alone.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import structlog

from app.core.manifests import Manifest
from app.core.quantity import QuantityError
from app.errors import AppError
from app.sandbox.batch.facts import deleting, ended
from app.sandbox.informer import Informer
from app.sandbox.nodes.room import Room, Wish, refusals, summary
from app.sandbox.recorder import Recorder
from app.sandbox.requests import RequestInfo
from app.sandbox.times import stamp
from app.sandbox.writer import Writer

_BINDING = RequestInfo(verb="create", subresource="binding")
_SCHEDULER = "default-scheduler"
_RETRY_S = 0.2


@dataclass(frozen=True, slots=True)
class _Waiting:
    pod: Manifest
    wish: Wish

    @property
    def order(self) -> tuple[int, str, str]:
        metadata = self.pod["metadata"]
        priority = self.pod["spec"].get("priority") or 0
        return (-priority, metadata["creationTimestamp"], metadata["uid"])


@dataclass(frozen=True, slots=True)
class _Placed:
    node: str
    wish: Wish


class Binder:
    def __init__(self, writer: Writer, recorder: Recorder, nodes: Informer, pods: Informer) -> None:
        self._writer = writer
        self._recorder = recorder
        self._pods = pods
        self._rooms: dict[str, Room] = {}
        self._waiting: dict[str, _Waiting] = {}  # by uid
        self._placed: dict[str, _Placed] = {}  # by uid
        self._changed = asyncio.Event()
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(0)  # changes come in bunches
            self._changed.clear()
            try:
                await self._bind_what_fits()
            except AppError as error:
                structlog.get_logger().warning("sandbox binding failed", error=str(error))
                await asyncio.sleep(_RETRY_S)
                self._changed.set()

    def _node_changed(self, new: Manifest | None, old: Manifest | None) -> None:
        if new is None:
            if old is not None:
                self._rooms.pop(old["metadata"]["name"], None)
            return
        name = new["metadata"]["name"]
        room = self._rooms.get(name)
        used = room.used if room is not None else self._used_on(name)
        self._rooms[name] = Room.of(new, used)
        self._changed.set()

    def _used_on(self, node: str) -> dict[str, int]:
        room = Room(node={})
        for placed in self._placed.values():
            if placed.node == node:
                room.take(placed.wish.requests)
        return room.used

    def _pod_changed(self, new: Manifest | None, old: Manifest | None) -> None:
        if new is None or ended(new):
            gone = new or old
            if gone is not None:
                self._forget(gone["metadata"]["uid"])
            return
        uid = new["metadata"]["uid"]
        if new["spec"].get("nodeName"):
            self._place(uid, new["spec"]["nodeName"], new)
        elif deleting(new) or new["spec"].get("schedulingGates") or not _is_ours(new):
            self._waiting.pop(uid, None)
        else:
            self._wait(uid, new)

    def _wait(self, uid: str, pod: Manifest) -> None:
        if uid in self._placed:
            return  # bound a moment ago; the news has not come back yet
        known = self._waiting.get(uid)
        if known is not None and known.pod["spec"] == pod["spec"]:
            self._waiting[uid] = _Waiting(pod, known.wish)
            return
        try:
            self._waiting[uid] = _Waiting(pod, Wish.of(pod))
        except QuantityError as error:
            structlog.get_logger().warning("sandbox pod cannot be read", error=str(error))
            return
        self._changed.set()

    def _place(self, uid: str, node: str, pod: Manifest) -> None:
        waiting = self._waiting.pop(uid, None)
        if uid in self._placed:
            return
        wish = waiting.wish if waiting is not None else Wish.of(pod)
        self._placed[uid] = _Placed(node, wish)
        if node in self._rooms:
            self._rooms[node].take(wish.requests)

    def _forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        placed = self._placed.pop(uid, None)
        if placed is None:
            return
        if placed.node in self._rooms:
            self._rooms[placed.node].give_back(placed.wish.requests)
        if self._waiting:
            self._changed.set()

    async def _bind_what_fits(self) -> None:
        hopeless: dict[str, str] = {}  # pods alike fit nowhere either: room only shrinks meanwhile
        for waiting in sorted(self._waiting.values(), key=lambda one: one.order):
            uid = waiting.pod["metadata"]["uid"]
            if uid not in self._waiting:
                continue
            why = hopeless.get(waiting.wish.digest)
            if why is None:
                node, why = self._first_fit(waiting.wish)
                if node is not None:
                    self._place(uid, node, waiting.pod)
                    await self._bind(waiting.pod, node)
                    await asyncio.sleep(0)  # a long pass must not hold up requests
                    continue
                hopeless[waiting.wish.digest] = why
            await self._explain(waiting.pod, why)

    def _first_fit(self, wish: Wish) -> tuple[str | None, str]:
        reasons: list[str] = []
        for name in sorted(self._rooms):
            found = refusals(wish, self._rooms[name])
            if not found:
                return name, ""
            reasons += found
        if not self._rooms:
            return None, "no nodes available to schedule pods"
        return None, summary(len(self._rooms), reasons)

    async def _bind(self, pod: Manifest, node: str) -> None:
        def edit(current: Manifest) -> Manifest:
            if current["spec"].get("nodeName") or deleting(current):
                return current
            return {
                **current,
                "spec": {**current["spec"], "nodeName": node},
                "status": self._scheduled(current, "True"),
            }

        bound = await self._writer.change(self._pods.kind, pod, edit, _BINDING)
        if bound is None or bound["spec"].get("nodeName") != node:
            self._forget(pod["metadata"]["uid"])

    async def _explain(self, pod: Manifest, why: str) -> None:
        def edit(current: Manifest) -> Manifest:
            known = _condition(current)
            if known.get("reason") == "Unschedulable" and known.get("message") == why:
                return current
            status = self._scheduled(current, "False", "Unschedulable", why)
            return {**current, "status": status}

        written = await self._writer.change(self._pods.kind, pod, edit, _STATUS)
        if written is not None and written is not pod:
            await self._recorder.tell(pod, _SCHEDULER, "FailedScheduling", why, "Warning")

    def _scheduled(
        self, pod: Manifest, value: str, reason: str = "", message: str = ""
    ) -> Manifest:
        status: dict[str, Any] = pod.get("status") or {}
        new: dict[str, Any] = {
            "type": "PodScheduled",
            "status": value,
            "lastProbeTime": None,
            "lastTransitionTime": stamp(self._writer.clock()),
        }
        if reason:
            new |= {"reason": reason, "message": message}
        others = [one for one in status.get("conditions") or () if one["type"] != "PodScheduled"]
        return {**status, "conditions": [*others, new]}


_STATUS = RequestInfo(verb="update", subresource="status")


def _condition(pod: Manifest) -> Manifest:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "PodScheduled"), {})


def _is_ours(pod: Manifest) -> bool:
    return bool(pod["spec"].get("schedulerName", _SCHEDULER) == _SCHEDULER)

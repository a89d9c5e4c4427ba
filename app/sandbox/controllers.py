"""Which loops make a cluster out of a storage?

The caches and controllers, joined and run: Jobs, binding, kubelet, garbage, namespaces. All are event-driven; an idle
cluster costs nothing. A loop that dies takes its reason to the log; it never takes the others along.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import structlog

from app.apiserver.kinds import Kind
from app.apiserver.storage import Storage
from app.sandbox.batch.plan import Pace
from app.sandbox.batch.rules import Rules
from app.sandbox.cleanup.garbage import GarbageCollector
from app.sandbox.cleanup.namespaces import NamespaceController
from app.sandbox.informer import Informer
from app.sandbox.job_controller import Caches, JobController
from app.sandbox.kinds.catalogue import Catalogue
from app.sandbox.kinds.events import EVENT
from app.sandbox.kinds.nodes import NAMESPACE, NODE
from app.sandbox.kinds.pods import POD
from app.sandbox.nodes.binder import Binder
from app.sandbox.nodes.kubelet import Kubelet
from app.sandbox.nodes.life import Habits
from app.sandbox.recorder import Recorder
from app.sandbox.work import WorkQueue
from app.sandbox.writer import Writer

K = TypeVar("K")

_WORKERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Character:
    """How the cluster behaves: how fast time goes in it, and which Kubernetes it plays."""

    speed: float = 1.0
    rules: Rules = field(default_factory=Rules)
    habits: Habits = field(default_factory=Habits)
    job_backoff_s: float = 10.0

    @property
    def pace(self) -> Pace:
        backoff = timedelta(seconds=self.job_backoff_s / self.speed)
        return Pace(backoff=backoff, speed=self.speed)


class Controllers:
    def __init__(
        self, writer: Writer, storage: Storage, kinds: Catalogue, character: Character
    ) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: list[Callable[[], None]] = []
        self.informers = {
            kind.key: Informer(storage, kind) for kind in kinds.all if _is_cached(kind)
        }
        namespaces, nodes, pods = (self._informer(kind) for kind in (NAMESPACE, NODE, POD))
        contents = [one for one in self.informers.values() if one.kind.namespaced]
        recorder = Recorder(writer, writer.clock)
        caches = Caches(jobs=self._informer(kinds.job), pods=pods)
        # Binder and kubelet come before the Job controller, so that they know of a change first.
        self._binder = Binder(writer, recorder, nodes, pods)
        self._kubelet = Kubelet(writer, nodes, pods, habits=character.habits, speed=character.speed)
        self._jobs = JobController(
            writer, caches, recorder, pace=character.pace, rules=character.rules
        )
        self._garbage = GarbageCollector(writer, storage, list(self.informers.values()))
        self._namespaces = NamespaceController(writer, storage, namespaces, contents, [EVENT])

    def _informer(self, kind: Kind) -> Informer:
        return self.informers[kind.key]

    def start(self) -> None:
        for informer in self.informers.values():
            self._run(informer.run(), f"informer-{informer.kind.plural}")
        self._run(self._binder.run(), "binder")
        self._work(self._jobs.queue, self._jobs.sync)
        self._work(self._jobs.stray_queue, self._jobs.sync_stray)
        self._work(self._kubelet.pod_queue, self._kubelet.sync_pod)
        self._work(self._kubelet.node_queue, self._kubelet.sync_node)
        self._work(self._garbage.queue, self._garbage.sync)
        self._work(self._namespaces.queue, self._namespaces.sync)

    async def stop(self) -> None:
        for close in self._closing:
            close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _work(self, queue: WorkQueue[K], handle: Callable[[K], Awaitable[None]]) -> None:
        self._closing.append(queue.close)
        for number in range(_WORKERS):
            self._run(queue.work(handle), f"{queue.name}-{number}")

    def _run(self, loop: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(loop, name=f"sandbox-{name}")
        task.add_done_callback(_report)
        self._tasks.append(task)


def _is_cached(kind: Kind) -> bool:
    """Events are many and own nothing."""
    return kind.plural != "events"


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        structlog.get_logger().error(
            "sandbox loop died", loop=task.get_name(), exc_info=task.exception()
        )

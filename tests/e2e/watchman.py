"""An outsider who keeps looking at the cluster alone: how many pods hold how much, and has any job been started twice?

It polls while the test runs, from a thread of its own, and knows nothing of Sluice but the limits it is told. A pod
counts from its creation until it has ended or is gone, bound or not.
"""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.cluster.admin import Admin, ApiError, Object

PAUSE_S = 0.1


class Watchman:
    """`limits` are cpus for each value of the node label `pool` in one namespace; "" stands for all pods."""

    def __init__(self, cluster: Admin, namespace: str, limits: Mapping[str, int]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._limits = limits
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.looks = 0
        self.faults: list[str] = []
        self.most: dict[str, float] = dict.fromkeys(limits, 0.0)
        self.epochs: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if error is None:
            assert self.looks > 10
            assert self.faults == []

    def _watch(self) -> None:
        while not self._stop.wait(PAUSE_S):
            with suppress(OSError, ApiError):  # the API server may be away: part of some tests
                self._look()

    def _look(self) -> None:
        pods = self._cluster.get(f"/api/v1/namespaces/{self._namespace}/pods")["items"]
        jobs = self._cluster.get(f"/apis/batch/v1/namespaces/{self._namespace}/jobs")["items"]
        self.looks += 1
        for pool, limit in self._limits.items():
            used = sum(cpus(pod) for pod in pods if holds(pod) and pool in ("", _pool(pod)))
            self.most[pool] = max(self.most[pool], used)
            if used > limit:
                self.faults.append(f"{time.monotonic():.1f}: {used} cpus in {pool!r}, not {limit}")
        for job in jobs:
            self._check_marks(job)

    def _check_marks(self, job: Object) -> None:
        """The terms of leaders only grow."""
        marks = job["metadata"].get("annotations") or {}
        epoch, uid = int(marks.get("sluice.dev/epoch", 0)), job["metadata"]["uid"]
        if epoch < self.epochs.get(uid, 0):
            self.faults.append(f"{job['metadata']['name']}: epoch {epoch} after a later one")
        self.epochs[uid] = epoch


def holds(pod: Object) -> bool:
    return pod["status"].get("phase") not in ("Succeeded", "Failed")


def cpus(pod: Object) -> float:
    return sum(
        float(one["resources"]["requests"]["cpu"].removesuffix("m"))
        / (1000 if one["resources"]["requests"]["cpu"].endswith("m") else 1)
        for one in pod["spec"]["containers"]
    )


def _pool(pod: Object) -> str:
    return str((pod["spec"].get("nodeSelector") or {}).get("pool", ""))

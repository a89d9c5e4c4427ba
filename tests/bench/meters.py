"""What do processes cost: CPU seconds, and the most memory they held at a time?

A meter stands for one process, or for one `with_children`. CPU of children that have ended is counted by the kernel
with their parent once it has waited for them. Memory is what is resident; of a group each process's proportional share
(PSS), so that Postgres' buffers count once. Looking costs CPU itself, hence seldom.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil

LOOK_S = 1.0


@dataclass(slots=True)
class Meter:
    pid: int
    with_children: bool = False
    cpu_s: float = 0.0
    peak_bytes: int = 0
    _begun: float = 0.0

    def begin(self) -> None:
        self._begun = self._spent()

    def look(self) -> None:
        """Note the memory of now."""
        self.peak_bytes = max(self.peak_bytes, sum(map(self._memory, self._processes())))

    def end(self) -> None:
        self.look()
        self.cpu_s = self._spent() - self._begun

    def _memory(self, process: psutil.Process) -> int:
        with suppress(psutil.Error):
            if not self.with_children:
                return int(process.memory_info().rss)
            return int(process.memory_full_info().pss)
        return 0

    def _spent(self) -> float:
        spent = 0.0
        for process in self._processes():
            with suppress(psutil.Error):
                times = process.cpu_times()
                spent += times.user + times.system
                if self.with_children:
                    spent += times.children_user + times.children_system
        return spent

    def _processes(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self.pid)
            return [root, *(root.children(recursive=True) if self.with_children else ())]
        except psutil.Error:
            return []


@dataclass(slots=True)
class Meters:
    """Several groups by name, measured over one stretch of time."""

    groups: Mapping[str, Meter]
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        for meter in self.groups.values():
            meter.begin()
        thread = threading.Thread(target=self._look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            for meter in self.groups.values():
                meter.end()

    def _look(self) -> None:
        while not self._stop.wait(LOOK_S):
            for meter in self.groups.values():
                meter.look()

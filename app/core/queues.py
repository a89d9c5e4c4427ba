"""Which workload is the next of its queue, and which ones wait aside until something changes?

Theory of operation. Each ClusterQueue has a *line*, ordered by priority, age and uid, and workloads *parked* aside
(Kueue calls them inadmissible): they were looked at, found no room, and would find none until capacity changes. A
*wake-up* puts the parked ones back in line. Rules, all Kueue's:

- StrictFIFO never parks a head that found no room: it blocks the queue. BestEffortFIFO parks it, and all of its
  equals in line with it; equals that come later are parked on arrival until the next wake-up.
- A head that waits for its victims to stop is *sticky* in a BestEffortFIFO queue: it stays first whoever arrives.
- Back-off (Requeued=False, or a requeue time still set) parks in either kind of queue, and no wake-up helps.
- A parked workload comes back by itself only when it changed in a way a decision can see.
- With usage-based admission fair sharing the LocalQueue that used least comes first, before even the sticky head. Its
  shares move with every admission, so the head is sought among all that stand in line.
- A wake-up while its head is being decided must not be lost: the count of wake-ups is compared when the head returns.

Reading the head takes nothing out: only the outcome of a cycle moves workloads.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from app.core.decisions import Cursor, Requeue
from app.core.model import QueueingStrategy, Workload
from app.core.ordering import EquivalenceKey, QueueKey, Rank, Share, equivalence_key, queue_key

_STAYS_IN_LINE = (Requeue.FAILED_AFTER_NOMINATION, Requeue.PENDING_PREEMPTION)
_PARKS_EQUALS = (Requeue.NO_FIT, Requeue.NO_CANDIDATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the scan over flavors came, and the circumstances under which going on makes sense."""

    cursor: Cursor
    equivalence: EquivalenceKey
    cycle: int
    generation: int


def is_held_back(workload: Workload) -> bool:
    """Its back-off is not over."""
    return workload.requeued is False or workload.requeue_at is not None


@dataclass(slots=True)
class _Group:
    """Equal workloads of one queue; doomed: one of them found no room, so none is looked at until a wake-up."""

    line: dict[str, QueueKey] = field(default_factory=dict)  # by uid
    heap: list[QueueKey] = field(default_factory=list)  # the line, and keys that have left it
    doomed: bool = False

    def first(self) -> QueueKey | None:
        while self.heap and self.line.get(self.heap[0][-1]) != self.heap[0]:
            heapq.heappop(self.heap)
        return self.heap[0] if self.heap else None


#: Equal workloads share a group; one that became equal to a doomed group while in line stands alone, by its uid.
_GroupKey = tuple[EquivalenceKey, str]


@dataclass(slots=True)
class PendingQueue:
    """The workloads waiting for one ClusterQueue.

    Equals stand in groups, so that parking or waking fifty thousand of them is one step.
    """

    strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO
    wakes: int = 0
    rank: Rank | None = None  # comes before everything else, where LocalQueues share by usage
    _members: dict[str, Workload] = field(default_factory=dict)  # all of them, by uid
    _group_of: dict[str, _GroupKey] = field(default_factory=dict)
    _groups: dict[_GroupKey, _Group] = field(default_factory=dict)
    _heap: list[QueueKey] = field(default_factory=list)  # the first of each group, and older firsts
    _aside: set[str] = field(default_factory=set)  # parked one by one, not with their group
    _doomed: set[EquivalenceKey] = field(default_factory=set)
    _progress: dict[str, Progress] = field(default_factory=dict)
    _sticky: str | None = None

    @property
    def _best_effort(self) -> bool:
        return self.strategy is QueueingStrategy.BEST_EFFORT_FIFO

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, uid: str) -> bool:
        return uid in self._members

    def head(self) -> Workload | None:
        """The next to be looked at."""
        if self.rank is not None:
            return min(self._standing(), key=self._place, default=None)
        if self._best_effort and self._sticky is not None and self._is_in_line(self._sticky):
            return self._members[self._sticky]
        while self._heap:
            uid = self._heap[0][-1]
            if (
                self._is_in_line(uid)
                and self._groups[self._group_of[uid]].line[uid] == self._heap[0]
            ):
                return self._members[uid]
            heapq.heappop(self._heap)
        return None

    def in_line(self) -> list[Workload]:
        """In the order they would be served."""
        return sorted(self._standing(), key=self._place)

    def _standing(self) -> Iterator[Workload]:
        return (one for uid, one in self._members.items() if self._is_in_line(uid))

    def _place(self, one: Workload) -> tuple[Share, bool, QueueKey]:
        share = (0, 0) if self.rank is None else self.rank(one)
        is_sticky = self._best_effort and one.uid == self._sticky
        return (share, not is_sticky, queue_key(one))

    def parked(self) -> list[Workload]:
        waiting = [w for uid, w in self._members.items() if not self._is_in_line(uid)]
        return sorted(waiting, key=lambda one: (one.key, one.uid))

    def progress(self, uid: str) -> Progress | None:
        return self._progress.get(uid)

    def put(self, workload: Workload, *, heed_hold: bool = True) -> None:
        """A workload arrived or changed; callers leave out what no decision can see."""
        uid = workload.uid
        was_in_line = uid in self._members and self._is_in_line(uid)
        self._leave(uid)
        self._members[uid] = workload
        if heed_hold and is_held_back(workload):
            self._park(uid)
        else:
            self._stand(workload, alone=was_in_line)

    def remove(self, uid: str) -> None:
        self._leave(uid)
        self._members.pop(uid, None)
        self._progress.pop(uid, None)
        if self._sticky == uid:
            self._sticky = None

    def requeue(
        self, workload: Workload, reason: Requeue, progress: Progress, *, woken: bool
    ) -> None:
        """A head was looked at and not admitted: keep it in line or park it.

        `woken` tells that a wake-up came after it was taken as head.
        """
        uid = workload.uid
        if self._members.get(uid) is not workload:
            return  # gone or changed meanwhile: it will be looked at again as it is now
        self._progress[uid] = progress
        if reason is Requeue.PENDING_PREEMPTION:
            self._sticky = uid
        is_unfinished = any(index != -1 for pod_set in progress.cursor for _, index in pod_set)
        if self._is_immediate(reason) or woken or is_unfinished:
            return
        self._park(uid)
        if self._best_effort and reason in _PARKS_EQUALS:
            self._doom(progress.equivalence)

    def wake(self, may_stand: Callable[[Workload], bool]) -> None:
        """Forget what was learnt about room; the parked ones that may stand in line do so again."""
        self.wakes += 1
        doomed, self._doomed = self._doomed, set()
        for equivalence in doomed:
            group = self._groups.get((equivalence, ""))
            if group is not None:
                group.doomed = False
                self._offer(group)
        for uid in list(self._aside):
            workload = self._members[uid]
            if not is_held_back(workload) and may_stand(workload):
                self._stand(workload)

    def _is_immediate(self, reason: Requeue) -> bool:
        if self._best_effort:
            return reason in _STAYS_IN_LINE
        return reason is not Requeue.NAMESPACE_MISMATCH

    def _is_in_line(self, uid: str) -> bool:
        key = self._group_of.get(uid)
        return key is not None and not self._groups[key].doomed

    def _stand(self, workload: Workload, *, alone: bool = False) -> None:
        uid, equivalence = workload.uid, equivalence_key(workload)
        self._aside.discard(uid)
        is_doomed = equivalence in self._doomed and self._best_effort
        key = (equivalence, uid if alone and is_doomed else "")
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(doomed=is_doomed and not key[1])
        self._group_of[uid] = key
        group.line[uid] = queue_key(workload)
        heapq.heappush(group.heap, group.line[uid])
        self._offer(group)

    def _leave(self, uid: str) -> None:
        """Out of line and out of the parking."""
        self._aside.discard(uid)
        key = self._group_of.pop(uid, None)
        if key is None:
            return
        group = self._groups[key]
        del group.line[uid]
        if group.line:
            self._offer(group)
        else:
            del self._groups[key]

    def _park(self, uid: str) -> None:
        self._leave(uid)
        self._aside.add(uid)

    def _doom(self, equivalence: EquivalenceKey) -> None:
        self._doomed.add(equivalence)
        group = self._groups.get((equivalence, ""))
        if group is not None:
            group.doomed = True

    def _offer(self, group: _Group) -> None:
        first = group.first()
        if first is not None and not group.doomed:
            heapq.heappush(self._heap, first)

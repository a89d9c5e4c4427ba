"""What may a cycle know? Everything decisions depend on, kept current by applying changes.

Laws. The image after any sequence of `put` and `remove` equals a full load of what remains, as far as objects, usage
and the set of pending workloads go (where a pending workload stands - in line or parked - is memory, not state). A
noun that equals the one already known changes nothing and wakes nobody. A workload holds quota exactly while its
status carries an admission and it is not finished, evicted or not; an inactive one too, until its job has stopped
(Kueue drops that from its cache at once; we believe only what was observed).

Wake-ups of parked workloads are a consequence of changes and immediate: capacity given back, or a queue, cohort,
flavor, check or topology changed, wakes the whole cohort tree it belongs to. Kueue coalesces them for a second.

Two of Kueue's omissions are followed only `to_the_letter`, for comparing decisions with it: quota that comes back
through a LocalQueue that is stopped or gone wakes nobody, and a LocalQueue that starts again puts its workloads in line
even during their back-off. The first leaves workloads waiting beside free quota, the second cuts a back-off short.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from app.core.decisions import Admit, CycleResult, Pending, Preempt
from app.core.model import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    Namespace,
    Noun,
    ResourceFlavor,
    StopPolicy,
    Topology,
    Workload,
    WorkloadPriorityClass,
)
from app.core.ordering import equivalence_key
from app.core.queues import PendingQueue, Progress
from app.core.quota import Node, QuotaTree, queues_below
from app.core.requests import held
from app.core.victims import Holding

_Key = tuple[str, str]  # namespace, name


class Image:
    """Objects, the quota tree with its usage, what runs, and what is pending."""

    def __init__(self, *, to_the_letter: bool = False) -> None:
        self.to_the_letter = to_the_letter
        self.tree = QuotaTree()
        self.flavors: dict[str, ResourceFlavor] = {}
        self.cluster_queues: dict[str, ClusterQueue] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.local_queues: dict[_Key, LocalQueue] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.priority_classes: dict[str, WorkloadPriorityClass] = {}
        self.checks: dict[str, AdmissionCheck] = {}
        self.topologies: dict[str, Topology] = {}
        self.workloads: dict[_Key, Workload] = {}
        self.holdings: dict[str, dict[str, Holding]] = {}  # cluster queue -> uid
        self.cycles = 0
        self._pending: dict[str, PendingQueue] = {}
        self._waits_in: dict[str, str] = {}  # uid -> cluster queue
        self._by_local_queue: dict[_Key, dict[str, _Key]] = {}  # -> uid -> workload
        self._inactive: dict[str, str | None] = {}  # memo of `why_inactive`

    @classmethod
    def load(cls, nouns: Iterable[Noun], *, to_the_letter: bool = False) -> "Image":
        """The image of a set of objects, whatever their order."""
        image = cls(to_the_letter=to_the_letter)
        for noun in sorted(nouns, key=lambda noun: isinstance(noun, Workload)):
            image.put(noun)
        return image

    # Changes

    def put(self, noun: Noun) -> None:
        """An object appeared or changed."""
        if isinstance(noun, Workload):
            self._put_workload(noun)
            return
        self._inactive.clear()
        match noun:
            case ClusterQueue():
                self._put_cluster_queue(noun)
            case Cohort():
                if _kept(self.cohorts, noun.name, noun):
                    before = self._companions(self.tree.cohort, noun.name)
                    self.tree.put_cohort(noun)
                    self._wake(before)
                    self._wake(self._companions(self.tree.cohort, noun.name))
            case LocalQueue():
                if _kept(self.local_queues, (noun.namespace, noun.name), noun):
                    self._settle_local_queue((noun.namespace, noun.name))
            case Namespace():
                if _kept(self.namespaces, noun.name, noun):
                    self._wake(self.cluster_queues)
            case ResourceFlavor():
                if _kept(self.flavors, noun.name, noun):
                    self._wake_users_of(flavor=noun.name)
            case AdmissionCheck():
                if _kept(self.checks, noun.name, noun):
                    self._wake_users_of(check=noun.name)
            case Topology():
                if _kept(self.topologies, noun.name, noun):
                    self._wake(self.cluster_queues)
            case WorkloadPriorityClass():
                self.priority_classes[noun.name] = noun

    def remove(self, kind: str, namespace: str | None, name: str) -> None:
        """An object vanished; removing what is not there is no error."""
        key = (namespace or "default", name)
        match kind:
            case "Workload":
                self._remove_workload(key)
            case "ClusterQueue":
                self._remove_cluster_queue(name)
            case "Cohort":
                if self.cohorts.pop(name, None):
                    before = self._companions(self.tree.cohort, name)
                    self.tree.remove_cohort(name)
                    self._wake(before)
            case "LocalQueue":
                if self.local_queues.pop(key, None):
                    self._settle_local_queue(key)
            case "Namespace":
                self.namespaces.pop(name, None)
            case "ResourceFlavor":
                self.flavors.pop(name, None)
            case "AdmissionCheck":
                self.checks.pop(name, None)
            case "Topology":
                self.topologies.pop(name, None)
            case "WorkloadPriorityClass":
                self.priority_classes.pop(name, None)
        self._inactive.clear()

    def finish_cycle(self, result: CycleResult, refused: frozenset[str] = frozenset()) -> None:
        """Make true what was committed: admissions become usage, victims are marked, the rest goes back.

        `refused` are the uids whose decision lost at commit: those workloads simply stay where they were.
        """
        if result.is_empty:
            return
        self.cycles += 1
        for decision in result.pending:
            if decision.uid not in refused:
                self._requeue(decision, result)
        for admit in result.admissions:
            if admit.uid not in refused:
                self._admit(admit, result)
        for preempt in result.preemptions:
            if preempt.uid not in refused:
                self._mark_preempted(preempt, result)

    # Questions

    def heads(self) -> list[Workload]:
        """The next workload of each queue that is served, in the order of the queues' names."""
        found = []
        for name in sorted(self._pending):
            head = self._pending[name].head()
            if head is not None and self.why_inactive(name) is None:
                found.append(head)
        return found

    def wakes(self, queue: str) -> int:
        return self._pending[queue].wakes

    def pending(self, queue: str) -> list[Workload]:
        """The workloads in line, in the order they would be served."""
        return self._pending[queue].in_line() if queue in self._pending else []

    def parked(self, queue: str) -> list[Workload]:
        """The workloads set aside until capacity changes, by name."""
        return self._pending[queue].parked() if queue in self._pending else []

    def progress(self, workload: Workload) -> Progress | None:
        queue = self._waits_in.get(workload.uid)
        return None if queue is None else self._pending[queue].progress(workload.uid)

    def queue_of(self, workload: Workload) -> ClusterQueue | None:
        """The ClusterQueue that a workload's LocalQueue leads to, if both exist."""
        local = self.local_queues.get((workload.namespace, workload.queue_name))
        return None if local is None else self.cluster_queues.get(local.cluster_queue)

    def admits_namespace(self, queue: ClusterQueue, namespace: str) -> bool:
        """A namespace nobody told us about still carries its own name as a label."""
        known = self.namespaces.get(namespace)
        labels = known.labels if known else {"kubernetes.io/metadata.name": namespace}
        selector = queue.namespace_selector
        return selector is not None and selector.matches(labels)

    def why_inactive(self, name: str) -> str | None:
        """The reason of Active=False of a ClusterQueue, or None while it is served."""
        if name not in self._inactive:
            self._inactive[name] = self._why_inactive(name)
        return self._inactive[name]

    # Workloads

    def _put_workload(self, workload: Workload) -> None:
        key = (workload.namespace, workload.name)
        old = self.workloads.get(key)
        if old == workload:
            return
        if old is not None and old.uid != workload.uid:
            self._remove_workload(key)
            old = None
        if old is not None and old.queue_name != workload.queue_name:
            self._by_local_queue[_door(old)].pop(old.uid, None)
        self.workloads[key] = workload
        self._by_local_queue.setdefault(_door(workload), {})[workload.uid] = key
        self._hold(old, workload)
        self._line_up(workload)
        if old is not None and (workload.finished or not workload.active):
            self._wake_companions(workload)

    def _remove_workload(self, key: _Key) -> None:
        old = self.workloads.pop(key, None)
        if old is None:
            return
        self._by_local_queue[_door(old)].pop(old.uid, None)
        self._leave_line(old.uid)
        self._hold(old, None)
        self._wake_companions(old)

    def _hold(self, old: Workload | None, new: Workload | None) -> None:
        """Move usage from what it held to what it holds; wake those who may profit."""
        before = self._holding_of(old)
        after = _holding(new)
        if before is not None:
            del self.holdings[before.cluster_queue][before.workload.uid]
            self.tree.charge(before.cluster_queue, before.usage, -1)
        if after is not None:
            self.holdings.setdefault(after.cluster_queue, {})[after.workload.uid] = after
            self.tree.charge(after.cluster_queue, after.usage)
        for holding in (before, after):
            if holding is not None:
                self.tree.note_change(holding.cluster_queue)
        if before is not None and _frees(before, after) and self._is_noticed(before.workload):
            self._wake(self._companions(self.tree.queue, before.cluster_queue))

    def _is_noticed(self, workload: Workload) -> bool:
        """Does quota that this workload gives back wake anybody?"""
        if not self.to_the_letter:
            return True
        local = self.local_queues.get(_door(workload))
        return local is not None and local.stop_policy is StopPolicy.NONE

    def _holding_of(self, workload: Workload | None) -> Holding | None:
        if workload is None or workload.admission is None:
            return None
        return self.holdings.get(workload.admission.cluster_queue, {}).get(workload.uid)

    def _line_up(self, workload: Workload, *, heed_hold: bool = True) -> None:
        """Bring a workload into the queue it belongs to, if it may wait in one at all."""
        queue = self._waiting_room(workload)
        if self._waits_in.get(workload.uid, queue) != queue or queue is None:
            self._leave_line(workload.uid)
        if queue is not None:
            self._waits_in[workload.uid] = queue
            self._pending[queue].put(workload, heed_hold=heed_hold)

    def _leave_line(self, uid: str) -> None:
        queue = self._waits_in.pop(uid, None)
        if queue is not None and queue in self._pending:
            self._pending[queue].remove(uid)

    def _waiting_room(self, workload: Workload) -> str | None:
        is_out = workload.finished or workload.gated or workload.deleting or not workload.active
        if is_out or workload.admission is not None:
            return None
        local = self.local_queues.get(_door(workload))
        if local is None or local.deleting or local.stop_policy is not StopPolicy.NONE:
            return None
        return local.cluster_queue if local.cluster_queue in self.cluster_queues else None

    # Outcomes of a cycle

    def _requeue(self, decision: Pending, result: CycleResult) -> None:
        queue = self._pending.get(decision.cluster_queue)
        head = result.heads.get(decision.uid)
        node = self.tree.queue(decision.cluster_queue)
        if queue is None or head is None or node is None:
            return
        progress = Progress(
            cursor=decision.cursor,
            equivalence=equivalence_key(head),
            cycle=self.cycles,
            generation=decision.generation,
        )
        woken = queue.wakes != result.wakes.get(decision.cluster_queue)
        queue.requeue(head, decision.requeue, progress, woken=woken)

    def _admit(self, decision: Admit, result: CycleResult) -> None:
        workload = self.workloads.get((decision.namespace, decision.name))
        if workload is None or workload.uid != decision.uid or workload.admission is not None:
            return
        self._put_workload(
            replace(
                workload,
                admission=decision.admission,
                reserved_at=result.at,
                admitted=not decision.checks,
                evicted=None,
                evicted_at=None,
            )
        )

    def _mark_preempted(self, decision: Preempt, result: CycleResult) -> None:
        workload = self.workloads.get((decision.namespace, decision.name))
        if workload is not None and workload.uid == decision.uid and workload.admission:
            self._put_workload(replace(workload, evicted="Preempted", evicted_at=result.at))

    # Queues

    def _put_cluster_queue(self, queue: ClusterQueue) -> None:
        is_new = queue.name not in self.cluster_queues
        if not _kept(self.cluster_queues, queue.name, queue):
            return
        before = self._companions(self.tree.queue, queue.name)
        self.tree.put_queue(queue)
        self._pending.setdefault(queue.name, PendingQueue()).strategy = queue.strategy
        if is_new:
            for key in [
                k for k, local in self.local_queues.items() if local.cluster_queue == queue.name
            ]:
                self._settle_local_queue(key)
        self._wake(before)
        self._wake(self._companions(self.tree.queue, queue.name))

    def _remove_cluster_queue(self, name: str) -> None:
        if self.cluster_queues.pop(name, None) is None:
            return
        before = self._companions(self.tree.queue, name)
        self.tree.remove_queue(name)
        del self._pending[name]
        for uid in [uid for uid, queue in self._waits_in.items() if queue == name]:
            del self._waits_in[uid]
        self._wake(before)

    def _settle_local_queue(self, key: _Key) -> None:
        """A LocalQueue appeared, changed or went: its workloads wait where they may now."""
        for workload in [self.workloads[k] for k in self._by_local_queue.get(key, {}).values()]:
            self._line_up(workload, heed_hold=not self.to_the_letter)

    def _why_inactive(self, name: str) -> str | None:
        queue, node = self.cluster_queues[name], self.tree.queue(name)
        if queue.deleting:
            return "Terminating"
        if queue.stop_policy is not StopPolicy.NONE:
            return "Stopped"
        flavors = [flavor for group in queue.groups for flavor in group.flavors]
        if any(flavor not in self.flavors for flavor in flavors):
            return "FlavorNotFound"
        checks = [self.checks.get(rule.name) for rule in queue.checks]
        if None in checks:
            return "AdmissionCheckNotFound"
        if not all(check.active for check in checks if check is not None):
            return "AdmissionCheckInactive"
        topologies = [self.flavors[flavor].topology_name for flavor in flavors]
        if any(name is not None and name not in self.topologies for name in topologies):
            return "TopologyNotFound"
        return "CohortCycle" if node is not None and node.cyclic else None

    # Wake-ups

    def _wake_users_of(self, *, flavor: str = "", check: str = "") -> None:
        for queue in list(self.cluster_queues.values()):
            uses_flavor = any(flavor in group.flavors for group in queue.groups)
            if uses_flavor or any(check == rule.name for rule in queue.checks):
                self._wake(self._companions(self.tree.queue, queue.name))

    def _wake_companions(self, workload: Workload) -> None:
        """Even one that held nothing may have stood in the way: room is reserved for a blocked preemptor."""
        queue = self.queue_of(workload)
        if queue is not None:
            self._wake(self._companions(self.tree.queue, queue.name))

    def _companions(self, find: Callable[[str], Node | None], name: str) -> list[str]:
        """The queues of the tree that a queue or cohort belongs to; empty while nobody waits anywhere."""
        node = find(name) if self._waits_in else None
        return [] if node is None else list(queues_below(node.root))

    def _wake(self, names: Iterable[str]) -> None:
        for name in names:
            queue = self.cluster_queues.get(name)
            if queue is not None:
                self._pending[name].wake(partial(self._admits, queue))

    def _admits(self, queue: ClusterQueue, workload: Workload) -> bool:
        return self.admits_namespace(queue, workload.namespace)


def _kept(known: dict[Any, Any], key: Any, noun: Noun) -> bool:
    """Remember a noun; False when it was known just so."""
    if known.get(key) == noun:
        return False
    known[key] = noun
    return True


def _door(workload: Workload) -> _Key:
    """The LocalQueue it was sent to."""
    return (workload.namespace, workload.queue_name)


def _holding(workload: Workload | None) -> Holding | None:
    if workload is None or workload.admission is None or workload.finished:
        return None
    return Holding(
        workload=workload, cluster_queue=workload.admission.cluster_queue, usage=held(workload)
    )


def _frees(before: Holding, after: Holding | None) -> bool:
    """Did room appear? A new value of its priority class counts: it changes who may preempt whom."""
    if after is None or after.cluster_queue != before.cluster_queue:
        return True
    if after.workload.priority_class and after.workload.priority != before.workload.priority:
        return True
    return any(after.usage.get(fr, 0) < value for fr, value in before.usage.items())

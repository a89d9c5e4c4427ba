"""What may a cycle know? Everything decisions depend on, kept current by applying changes.

Laws. The image after any sequence of `put` and `remove` equals a full load of what remains, as far as objects, usage
and the set of pending workloads go (where a pending workload stands - in line or parked - is memory, not state). A
noun that equals the one already known changes nothing and wakes nobody. A workload holds quota exactly while its
status carries an admission and it is not finished, evicted or not; an inactive one too, until its job has stopped
(Kueue drops that from its cache at once; we believe only what was observed).

Wake-ups of parked workloads are a consequence of changes and immediate: capacity given back, or a queue, cohort,
flavor, check or topology changed, wakes the whole cohort tree it belongs to. Kueue coalesces them for a second.

Some of Kueue's ways are followed only `to_the_letter`, for comparing decisions with it: quota that comes back
through a LocalQueue that is stopped or gone wakes nobody, a LocalQueue that starts again puts its workloads in line
even during their back-off, any node that changes wakes every queue with a topology, and room on nodes is judged
carelessly (``has_room_to_the_letter``). The first leaves workloads waiting beside free quota, the second cuts a
back-off short.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial

from app.core import model
from app.core.books import Books, Holding
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
)
from app.core.node import Node, queues_below
from app.core.objects import Key, Objects, door
from app.core.ordering import Rank, equivalence_key
from app.core.placement.sites import Sites
from app.core.placing import held_places
from app.core.pods_ready import TIMED_OUT
from app.core.policy import DEFAULT, Policy
from app.core.proposal import Nomination
from app.core.queues import PendingQueue, Progress
from app.core.quota import QuotaTree
from app.core.requests import held
from app.core.resources import Requests
from app.core.rivals import Rivals
from app.core.shares import Shares

_PREEMPTED = "Preempted"


class Image(Objects):
    """Objects, the quota tree with its usage, what runs, and what is pending."""

    def __init__(self, policy: Policy = DEFAULT, *, to_the_letter: bool = False) -> None:
        super().__init__()
        self.policy = policy
        self.to_the_letter = to_the_letter
        self.shares = Shares(self, policy.admission_fairness)
        self.unready: set[str] = set()  # hold quota, and not all of their pods are ready
        self.tree = QuotaTree()
        self.sites = Sites(nodes=self.nodes, flavors=self.flavors, topologies=self.topologies)
        self.books = Books(self.tree, self.sites)
        self.holdings: dict[str, dict[str, Holding]] = {}  # cluster queue -> uid
        self.cycles = 0
        self.rivals = Rivals()
        self.nominations: dict[
            str, tuple[object, Nomination]
        ] = {}  # the last of each queue; a memo
        self._pending: dict[str, PendingQueue] = {}
        self._waits_in: dict[str, str] = {}  # uid -> cluster queue
        self._by_door: dict[Key, dict[str, Key]] = {}  # local queue -> uid -> workload

    @classmethod
    def load(
        cls, nouns: Iterable[Noun], policy: Policy = DEFAULT, *, to_the_letter: bool = False
    ) -> "Image":
        """The image of a set of objects, whatever their order."""
        image = cls(policy, to_the_letter=to_the_letter)
        for noun in sorted(nouns, key=lambda noun: isinstance(noun, Workload)):
            image.put(noun)
        return image

    # Changes

    def put(self, noun: Noun) -> None:
        """An object appeared or changed."""
        if isinstance(noun, Workload):
            self._put_workload(noun)
            return
        before = self._affected(noun)
        known = self.find(type(noun).__name__, getattr(noun, "namespace", None), noun.name)
        if not self.keep(noun):
            return
        match noun:
            case ClusterQueue():
                self._place_queue(noun)
            case Cohort():
                self.tree.put_cohort(noun)
            case LocalQueue():
                self._open_door(known, noun)
            case ResourceFlavor() | Topology() | model.Node():
                self.sites.put(noun)
                self._place_again(noun)
        self._wake([*before, *self._affected(noun)])

    def remove(self, kind: str, namespace: str | None, name: str) -> None:
        """An object vanished; removing what is not there is no error."""
        noun = self.find(kind, namespace, name)
        if noun is None:
            return
        before = self._affected(noun)
        self.drop(noun)
        match noun:
            case Workload():
                self._forget_workload(noun)
            case ClusterQueue():
                self._clear_queue(name)
            case Cohort():
                self.tree.remove_cohort(name)
            case LocalQueue():
                self._settle((noun.namespace, name))
            case ResourceFlavor() | Topology() | model.Node():
                self.sites.remove(noun)
                self._place_again(noun)
        self._wake(before)

    def put_others(self, node: str, usage: Requests) -> None:
        """What pods that no admission placed take of a node: those of daemons, of other schedulers, of the system."""
        known = self.nodes.get(node)
        if self.sites.put_others(node, usage) and known is not None:
            self._wake(self._affected(known))

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

    def why_inactive(self, name: str) -> str | None:
        """The reason of Active=False of a ClusterQueue; a cohort that is its own ancestor is one, too."""
        reason = super().why_inactive(name)
        if reason is not None:
            return reason
        node = self.tree.queue(name)
        return "CohortCycle" if node is not None and node.cyclic else None

    def wakes(self, queue: str) -> int:
        return self._pending[queue].wakes

    def pending(self, queue: str) -> list[Workload]:
        """The workloads in line, in the order they would be served."""
        return self._pending[queue].in_line() if queue in self._pending else []

    def parked(self, queue: str) -> list[Workload]:
        """The workloads set aside until capacity changes, by name."""
        return self._pending[queue].parked() if queue in self._pending else []

    def rank_in(self, queue: str) -> Rank | None:
        """What comes before priority among the workloads of a queue, where its LocalQueues share it by usage."""
        found = self.cluster_queues.get(queue)
        is_shared = self.shares.rules is not None and found is not None and found.usage_based
        return self.shares.rank if is_shared else None

    def through(self, key: Key) -> list[Workload]:
        """All workloads that were sent to a LocalQueue, whatever became of them."""
        return [self.workloads[place] for place in self._by_door.get(key, {}).values()]

    def progress(self, workload: Workload) -> Progress | None:
        """How far the scan over flavors came when the workload was looked at last."""
        queue = self._waits_in.get(workload.uid)
        return None if queue is None else self._pending[queue].progress(workload.uid)

    # Workloads

    def _put_workload(self, workload: Workload) -> None:
        workload = self._in_place(workload)
        key = (workload.namespace, workload.name)
        old = self.workloads.get(key)
        if old is not None and old.uid != workload.uid:
            self.remove("Workload", *key)
            old = None
        if not self.keep(workload):
            return
        if workload.finished or (old is not None and _asks_otherwise(old, workload)):
            self.rivals.forget(workload.uid)
        if old is not None and door(old) != door(workload):
            self._by_door[door(old)].pop(old.uid, None)
            self.shares.note(old, gone=True)
        self._by_door.setdefault(door(workload), {})[workload.uid] = key
        self._hold(old, workload)
        self.shares.note(workload)
        self._line_up(workload)
        if old is not None and (workload.finished or not workload.active):
            self._wake(self._affected(workload))

    def _forget_workload(self, workload: Workload) -> None:
        self._by_door[door(workload)].pop(workload.uid, None)
        self._leave_line(workload.uid)
        self.rivals.forget(workload.uid)
        self._hold(workload, None)
        self.shares.note(workload, gone=True)

    def _in_place(self, workload: Workload) -> Workload:
        """Where the rules say so, whoever was not ready in time keeps its place in line."""
        patience = self.policy.pods_ready
        keeps = patience is not None and patience.requeuing.keeps_place
        if keeps and workload.evicted == TIMED_OUT:
            return replace(workload, evicted_at=None)
        return workload

    def _hold(self, old: Workload | None, new: Workload | None) -> None:
        """Move usage from what it held to what it holds; wake those who may profit."""
        before, after = self._holding_of(old), self._holding(new)
        if before is not None:
            del self.holdings[before.cluster_queue][before.workload.uid]
            self.books.remove(before)
            self.tree.note_change(before.cluster_queue)
            self.unready.discard(before.workload.uid)
        if after is not None:
            if not after.workload.ready:
                self.unready.add(after.workload.uid)
            self.holdings.setdefault(after.cluster_queue, {})[after.workload.uid] = after
            self.books.put(after)
            self.tree.note_change(after.cluster_queue)
        if before is None or not _frees(before, after):
            return
        node = self.tree.queue(before.cluster_queue)
        if node is not None and before.workload.evicted != _PREEMPTED:
            self.rivals.note_room(node.root.name)
        queue = self.cluster_queues.get(before.cluster_queue)
        if queue is not None and self._is_noticed(before.workload):
            self._wake(self._affected(queue))

    def _place_again(self, noun: Noun) -> None:
        """Which flavor's nodes hold a workload's pods depends on which of its flavors have a topology."""
        if not isinstance(noun, ResourceFlavor):
            return
        for holdings in self.holdings.values():
            for uid, holding in holdings.items():
                places = held_places(holding.workload, self.flavors)
                if places != holding.places:
                    self.sites.occupy(holding.places, -1)
                    self.sites.occupy(places)
                    holdings[uid] = replace(holding, places=places)

    def _holding_of(self, workload: Workload | None) -> Holding | None:
        if workload is None or workload.admission is None:
            return None
        return self.holdings.get(workload.admission.cluster_queue, {}).get(workload.uid)

    def _holding(self, workload: Workload | None) -> Holding | None:
        if workload is None or workload.admission is None or workload.finished:
            return None
        return Holding(
            workload=workload,
            cluster_queue=workload.admission.cluster_queue,
            usage=held(workload),
            places=held_places(workload, self.flavors),
        )

    def _is_noticed(self, workload: Workload) -> bool:
        """Does quota that this workload gives back wake anybody?"""
        local = self.local_queues.get(door(workload))
        is_open = local is not None and local.stop_policy is StopPolicy.NONE
        return is_open or not self.to_the_letter

    def _line_up(self, workload: Workload, *, heed_hold: bool = True) -> None:
        """Bring a workload into the queue it belongs to, if it may wait in one at all."""
        queue = self.waiting_room(workload)
        if self._waits_in.get(workload.uid) != queue:
            self._leave_line(workload.uid)
        if queue is not None:
            self._waits_in[workload.uid] = queue
            self._pending[queue].put(workload, heed_hold=heed_hold)

    def _leave_line(self, uid: str) -> None:
        queue = self._waits_in.pop(uid, None)
        if queue is not None and queue in self._pending:
            self._pending[queue].remove(uid)

    # Outcomes of a cycle

    def _requeue(self, decision: Pending, result: CycleResult) -> None:
        queue = self._pending.get(decision.cluster_queue)
        head = result.heads.get(decision.uid)
        if queue is None or head is None:
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
        at = _recorded(result.at)
        self._put_workload(
            replace(
                workload,
                admission=decision.admission,
                reserved_at=at,
                admitted=not decision.checks,
                admitted_at=None if decision.checks else at,
                ready=False,
                evicted=None,
                evicted_at=None,
            )
        )

    def _mark_preempted(self, decision: Preempt, result: CycleResult) -> None:
        workload = self.workloads.get((decision.namespace, decision.name))
        if workload is None or workload.uid != decision.uid or not workload.admission:
            return
        self._put_workload(replace(workload, evicted=_PREEMPTED, evicted_at=_recorded(result.at)))
        root = decision.roots[0] if decision.roots else ""
        self.rivals.note(decision.by_uid, decision.uid, root, self.edits)

    # Queues

    def _place_queue(self, queue: ClusterQueue) -> None:
        self.tree.put_queue(queue)
        if queue.name not in self._pending:
            self._pending[queue.name] = PendingQueue()
            for key, local in list(self.local_queues.items()):
                if local.cluster_queue == queue.name:
                    self._settle(key)
        self._pending[queue.name].strategy = queue.strategy
        self._pending[queue.name].rank = self.rank_in(queue.name)

    def _clear_queue(self, name: str) -> None:
        self.tree.remove_queue(name)
        del self._pending[name]
        for uid in [uid for uid, queue in self._waits_in.items() if queue == name]:
            del self._waits_in[uid]

    def _open_door(self, known: Noun | None, local: LocalQueue) -> None:
        """Whoever waits behind it is not moved where only its past usage was reckoned anew."""
        key = (local.namespace, local.name)
        if not isinstance(known, LocalQueue) or _without_past(known) != _without_past(local):
            self._settle(key)
        self.shares.settle(local, self.through(key))

    def _settle(self, key: Key) -> None:
        """A LocalQueue appeared, changed or went: its workloads wait where they may now."""
        for workload in self.through(key):
            self._line_up(workload, heed_hold=not self.to_the_letter)

    # Wake-ups

    def _affected(self, noun: Noun) -> list[str]:
        """The queues to which a change of this object may bring room; none while nobody waits anywhere.

        A workload that held nothing counts as well: room may have been kept for it while it was blocked.
        """
        if not self._waits_in:
            return []
        nodes: list[Node | None] = []
        match noun:
            case ClusterQueue():
                nodes = [self.tree.queue(noun.name)]
            case Cohort():
                nodes = [self.tree.cohort(noun.name)]
            case Workload():
                queue = self.queue_of(noun)
                nodes = [] if queue is None else [self.tree.queue(queue.name)]
            case ResourceFlavor() | AdmissionCheck():
                nodes = [self.tree.queue(name) for name in self.users_of(noun)]
            case model.Node():
                touched = None if self.to_the_letter else noun
                nodes = [self.tree.queue(name) for name in self.queues_on(touched)]
            case Namespace() | Topology():
                nodes = [self.tree.queue(name) for name in self.cluster_queues]
        roots = {id(node.root): node.root for node in nodes if node is not None}
        return [name for root in roots.values() for name in queues_below(root)]

    def _wake(self, names: Iterable[str]) -> None:
        for name in dict.fromkeys(names):
            queue = self.cluster_queues.get(name)
            if queue is not None:
                self._pending[name].wake(partial(self._admits, queue))

    def _admits(self, queue: ClusterQueue, workload: Workload) -> bool:
        return self.admits_namespace(queue, workload.namespace)


def _without_past(local: LocalQueue) -> LocalQueue:
    return replace(local, consumed={}, consumed_at=None)


def _recorded(at: datetime) -> datetime:
    """What the record keeps of a time: whole seconds. Knowing better would decide otherwise after a restart."""
    return at.replace(microsecond=0)


def _asks_otherwise(old: Workload, new: Workload) -> bool:
    return old.priority != new.priority or old.pod_sets != new.pod_sets


def _frees(before: Holding, after: Holding | None) -> bool:
    """Did room appear? A new value of its priority class counts: it changes who may preempt whom."""
    if after is None or after.cluster_queue != before.cluster_queue:
        return True
    if after.workload.priority_class and after.workload.priority != before.workload.priority:
        return True
    is_less = any(after.usage.get(fr, 0) < value for fr, value in before.usage.items())
    return is_less or before.places != after.places

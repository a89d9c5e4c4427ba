"""The world of the conformance runner, as our own service would run it, with a watchful audience.

Differences to the recorded scenarios: rules of ours that depart from Kueue's are on, jobs may take as long to stop as
the test says, and the laws are held around every cycle and after every step. A scenario is written with `Stage`:
manifests in, steps by name, and questions that read well in an assertion.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from app.core import lifecycle
from app.core.cycle import schedule
from app.core.decisions import CycleResult
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.metadata import condition, name_of, spec_of, stamp, status_of
from app.core.policy import AdmissionFairness, FairStrategy, PodsReady, Policy
from app.core.resources import FlavorResource
from tests.builders import NOW
from tests.conformance.world import World
from tests.laws import checks
from tests.laws.books import Books, holds
from tests.laws.victims import victims_are_needed

#: How long the job of an evicted workload takes to stop.
AT_ONCE = "at once"
A_CYCLE_LATER = "a cycle later"
WHEN_TOLD = "when told"


class Stage(World):
    def __init__(
        self,
        *manifests: Manifest | Sequence[Manifest],
        fair: Sequence[FairStrategy] | None = None,
        stopping: str = AT_ONCE,
        overbook: bool = False,
        break_loops: bool = True,
        patience: PodsReady | None = None,
        sharing: AdmissionFairness | None = None,
        watched: bool = True,
    ) -> None:
        self.stopping_takes = stopping
        self.is_watched = watched
        self.refused: frozenset[str] = frozenset()  # whose decision loses at the next commit
        self.meanwhile: Callable[[], object] | None = None  # happens during the next cycle
        self.last = CycleResult(at=NOW)
        config = {} if stopping == AT_ONCE else {"evictions": "delayed"}
        scenario = {"now": stamp(NOW), "config": config, "objects": list(_flat(manifests))}
        policy = Policy(
            fair_sharing=None if fair is None else tuple(fair),
            never_overbook=not overbook,
            break_loops=break_loops,
            pods_ready=patience,
            admission_fairness=sharing,
        )
        super().__init__(scenario, to_the_letter=False, policy=policy)
        self._checked()

    # Steps

    def add(self, *manifests: Manifest | Sequence[Manifest]) -> "Stage":
        for manifest in _flat(manifests):
            self._step("create", object=manifest)
        return self

    def edit(self, kind: str, name: str, **spec: Any) -> "Stage":
        """Change fields of a spec; a field set to None goes."""
        old = self.find(kind, name)
        new = {key: value for key, value in {**spec_of(old), **spec}.items() if value is not None}
        return self._step("update", object={**old, "spec": new})

    def put(self, manifest: Manifest) -> "Stage":
        """Replace an object, status and all."""
        self._store(manifest)
        self._controllers()
        return self._checked()

    def remove(self, kind: str, name: str) -> "Stage":
        key = f"default/{name}" if kind in ("Workload", "LocalQueue") else name
        return self._step("delete", kind=kind, name=key)

    def finish(self, *names: str) -> "Stage":
        return self._step("finish", workloads=[f"default/{name}" for name in names])

    def end(self, name: str) -> "Stage":
        """As `finish`, admitted or not."""
        manifest = self.find("Workload", name)
        return self.put(lifecycle.finish(manifest, "Failed", "It failed", self.now))

    def reclaim(self, name: str, done: int) -> "Stage":
        return self._step("reclaim", workload=f"default/{name}", podSets={"main": done})

    def stop(self, *names: str) -> "Stage":
        """The jobs of these evicted workloads have stopped."""
        for name in names:
            assert self.is_stopping(self.find("Workload", name)), f"{name} is not stopping"
            self._store(lifecycle.release(self.find("Workload", name), self.now))
        self._controllers()
        return self._checked()

    def evict(self, name: str, reason: str, **more: str) -> "Stage":
        """Somebody else than the scheduler wants it to stop."""
        manifest = self.find("Workload", name)
        return self.put(lifecycle.evict(manifest, reason, "Said so", self.now, **more))

    def cycle(self, times: int = 1) -> "Stage":
        for _ in range(times):
            self._step("cycle")
        return self

    def settle(self) -> "Stage":
        return self._step("settle")

    def advance(self, seconds: int) -> "Stage":
        self._step("advance", seconds=seconds)
        self._controllers()
        return self._checked()

    def restart(self) -> "Stage":
        """Forget everything but the manifests."""
        nouns = [parse(manifest) for manifest in self.manifests.values()]
        self.image = Image.load(nouns, self.policy)
        return self._checked()

    # Questions

    def find(self, kind: str, name: str) -> Manifest:
        key = f"default/{name}" if kind in ("Workload", "LocalQueue") else name
        return self.manifests[kind, key]

    def status(self, name: str) -> Manifest:
        return status_of(self.find("Workload", name))

    @property
    def holding(self) -> list[str]:
        """Whoever holds quota, evicted or not."""
        return sorted(name_of(one) for one in self.workloads() if holds(one))

    @property
    def running(self) -> list[str]:
        """Whoever is admitted and may go on."""
        stopping = {name_of(one) for one in self.workloads() if self.is_stopping(one)}
        return [name for name in self.holding if name not in stopping]

    @property
    def waiting(self) -> list[str]:
        """Whoever stands in line or is parked."""
        queues = self.image.cluster_queues
        found = (one for q in queues for one in (*self.image.pending(q), *self.image.parked(q)))
        return sorted(one.name for one in found)

    def evictions(self, name: str) -> int:
        """How often it was evicted, for whatever reason."""
        return sum(checks.evictions_by_reason(self.find("Workload", name)).values())

    def reason(self, name: str) -> str | None:
        """Why it holds no quota."""
        reserved = condition(self.status(name), "QuotaReserved") or {}
        return None if reserved.get("status") == "True" else reserved.get("reason")

    def message(self, name: str) -> str:
        return str((condition(self.status(name), "QuotaReserved") or {}).get("message", ""))

    def admission(self, name: str) -> Manifest:
        """Of its first pod set."""
        found: Manifest = self.status(name)["admission"]["podSetAssignments"][0]
        return found

    def used(self, queue: str, resource: str = "gpu", flavor: str = "default") -> int:
        node = self.image.tree.queue(queue) or self.image.tree.cohort(queue)
        assert node is not None, f"no queue or cohort {queue}"
        return node.used(FlavorResource(flavor, resource))

    def books(self, without: Iterable[str] = ()) -> Books:
        return Books(self.manifests.values(), without)

    def served(self, name: str) -> bool:
        """Is this ClusterQueue there, open, and no part of a circle?"""
        is_there = name in self.image.cluster_queues
        return is_there and self.image.why_inactive(name) is None

    # The world

    def _step(self, op: str, **told: Any) -> "Stage":
        self.play({"op": op, **told})
        return self._checked()

    def _checked(self) -> "Stage":
        if self.is_watched:
            checks.after_a_step(self)
        return self

    def _due(self) -> list[Manifest]:
        return super()._due() if self.stopping_takes == A_CYCLE_LATER else []

    def _decide(self) -> None:
        result = self._watched() if self.is_watched else self._schedule()
        lost = self._lose(result)
        self.image.finish_cycle(result, lost)
        kept = _without(result, lost)
        self.last = kept
        self._carry_out(kept)

    def _schedule(self) -> CycleResult:
        return schedule(self.image, self.policy, self.now)

    def _watched(self) -> CycleResult:
        victims_are_needed(self)
        before = checks.before_a_cycle(self)
        result = self._schedule()
        checks.after_deciding(self, before, result)
        return result

    def _lose(self, result: CycleResult) -> frozenset[str]:
        """Let happen what happens between deciding and committing, and guard the commit as the store does.

        Whose own row changed loses its decision; if quota was edited, every promise of quota is lost.
        """
        lost, self.refused = self.refused, frozenset()
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is None:
            return lost
        before = dict(self.manifests)
        meanwhile()
        changed = {key for key in before if before[key] is not self.manifests.get(key)}
        lost |= {before[key]["metadata"]["uid"] for key in changed if key[0] == "Workload"}
        if any(kind != "Workload" for kind, _ in changed):
            lost |= {one.uid for one in result.admissions}
            lost |= {one.uid for one in result.preemptions}
        return lost

    def _store(self, manifest: Manifest) -> None:
        if manifest["kind"] == "Workload":
            self._note(manifest)
        super()._store(manifest)

    def _note(self, new: Manifest) -> None:
        uid = new["metadata"]["uid"]
        old = self.manifests.get(("Workload", f"default/{name_of(new)}"))
        if old is not None and old["metadata"]["uid"] == uid:
            checks.nothing_goes_back(old, new)


def _without(result: CycleResult, lost: frozenset[str]) -> CycleResult:
    return CycleResult(
        at=result.at,
        admissions=tuple(one for one in result.admissions if one.uid not in lost),
        preemptions=tuple(one for one in result.preemptions if one.uid not in lost),
        pending=tuple(one for one in result.pending if one.uid not in lost),
        heads=result.heads,
        wakes=result.wakes,
    )


def _flat(manifests: Iterable[Manifest | Sequence[Manifest]]) -> Iterable[Manifest]:
    for one in manifests:
        if isinstance(one, dict):
            yield one
        else:
            yield from one

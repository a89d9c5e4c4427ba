"""A cluster without machines: manifests, a clock, and controllers that act until they are quiet.

Jobs stop the moment they are asked to, or, with delayed evictions, after the next cycle. Everything else - what a
decision does to a status, what the controllers do, what a cycle decides - is the core's own doing.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from app.core import lifecycle
from app.core.cycle import schedule
from app.core.decisions import CycleResult
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.metadata import condition, is_true, moment, name_of, status_of
from app.core.model import Workload
from app.core.policy import BOTH_STRATEGIES, FairStrategy, Policy
from app.core.upkeep import advance

_CLUSTER_SCOPED = {
    "ResourceFlavor",
    "ClusterQueue",
    "Cohort",
    "WorkloadPriorityClass",
    "Namespace",
    "Topology",
    "Node",
}
_MOST_CYCLES = 150
_QUIET_CYCLES = 8


@dataclass(slots=True)
class Record:
    """What happened since the last look, in order."""

    newly_admitted: list[str] = field(default_factory=list)
    preempted: list[dict[str, str]] = field(default_factory=list)
    evicted: list[dict[str, str]] = field(default_factory=list)


def policy_of(config: dict[str, Any] | None) -> Policy:
    fair = (config or {}).get("fairSharing")
    if fair is None:
        return Policy()
    names = fair.get("preemptionStrategies")
    return Policy(fair_sharing=tuple(FairStrategy(n) for n in names) if names else BOTH_STRATEGIES)


class World:
    def __init__(
        self,
        scenario: dict[str, Any],
        *,
        to_the_letter: bool = True,
        policy: Policy | None = None,
    ) -> None:
        self.now: datetime = moment(scenario["now"])
        self.policy = policy or policy_of(scenario.get("config"))
        self.is_delayed = (scenario.get("config") or {}).get("evictions") == "delayed"
        self.manifests: dict[tuple[str, str], Manifest] = {}
        self.record = Record()
        self.is_quiet = False  # did the last settling end by itself?
        for manifest in scenario["objects"]:
            self.manifests[_identity(manifest)] = manifest
        nouns = [parse(manifest) for manifest in scenario["objects"]]
        self.image = Image.load(nouns, self.policy, to_the_letter=to_the_letter)
        self._controllers()

    # Steps

    def play(self, step: dict[str, Any]) -> None:
        """Do one step of a scenario."""
        getattr(self, f"_do_{step['op']}")(step)

    def _do_cycle(self, _: dict[str, Any]) -> None:
        self._cycle()

    def _do_settle(self, _: dict[str, Any]) -> None:
        quiet, before = 0, self._visible()
        self.is_quiet = False
        for _cycle in range(_MOST_CYCLES):
            if quiet == _QUIET_CYCLES or not self._has_work():
                self.is_quiet = True
                return
            self._cycle()
            after = self._visible()
            quiet, before = (quiet + 1 if after == before else 0), after

    def _do_create(self, step: dict[str, Any]) -> None:
        self._store(step["object"])
        self._controllers()

    def _do_update(self, step: dict[str, Any]) -> None:
        new = step["object"]
        old = self.manifests[_identity(new)]
        merged = {**old, **new, "metadata": {**old["metadata"], **new["metadata"]}}
        if new["kind"] != "Node" and "status" in old:
            merged["status"] = old["status"]
        self._store(merged)
        self._controllers()

    def _do_delete(self, step: dict[str, Any]) -> None:
        namespace, _, name = step["name"].rpartition("/")
        self.manifests.pop((step["kind"], step["name"]))
        self.image.remove(step["kind"], namespace or None, name)
        self._controllers()

    def _do_finish(self, step: dict[str, Any]) -> None:
        for key in step["workloads"]:
            manifest = self.manifests[("Workload", key)]
            message = "Job finished successfully"
            self._store(lifecycle.finish(manifest, "Succeeded", message, self.now))
        self._controllers()

    def _do_reclaim(self, step: dict[str, Any]) -> None:
        manifest = self.manifests[("Workload", step["workload"])]
        done = [{"name": name, "count": count} for name, count in step["podSets"].items()]
        self._store({**manifest, "status": {**status_of(manifest), "reclaimablePods": done}})
        self._controllers()

    def _do_advance(self, step: dict[str, Any]) -> None:
        self.now += timedelta(seconds=step["seconds"])

    # The world

    def workloads(self) -> list[Manifest]:
        return [m for (kind, _), m in sorted(self.manifests.items()) if kind == "Workload"]

    def is_stopping(self, manifest: Manifest) -> bool:
        return is_true(status_of(manifest), "Evicted") and holds_quota(manifest)

    def _cycle(self) -> None:
        self.now += timedelta(seconds=1)
        due = self._due()
        if self._has_work():
            self._decide()
        for manifest in due:
            current = self.manifests.get(_identity(manifest))
            if current is not None and self.is_stopping(current):
                self._store(lifecycle.release(current, self.now))
        self._controllers()

    def _due(self) -> list[Manifest]:
        """The evicted workloads whose jobs will have stopped when this cycle is over."""
        return [m for m in self.workloads() if self.is_stopping(m)] if self.is_delayed else []

    def _decide(self) -> None:
        result = schedule(self.image, self.policy, self.now)
        self.image.finish_cycle(result)
        self._carry_out(result)

    def _carry_out(self, result: CycleResult) -> None:
        for admit in result.admissions:
            key = f"{admit.namespace}/{admit.name}"
            self._store(lifecycle.admit(self._workload(key), admit, self.now))
            self.record.newly_admitted.append(key)
        preempted = []
        for preempt in result.preemptions:
            key = f"{preempt.namespace}/{preempt.name}"
            self._store(lifecycle.preempt(self._workload(key), preempt, self.now))
            by = f"{preempt.by_namespace}/{preempt.by_name}"
            preempted.append({"workload": key, "by": by, "reason": str(preempt.reason)})
        self.record.preempted += sorted(preempted, key=lambda one: one["workload"])
        for waiting in result.pending:
            key = f"{waiting.namespace}/{waiting.name}"
            why = waiting.explanation
            manifest = self._workload(key)
            self._store(lifecycle.pending(manifest, why.reason, why.message, self.now))

    def _controllers(self) -> None:
        """Let the controllers act until they are quiet."""
        is_busy = True
        while is_busy:
            is_busy = False
            for manifest in self.workloads():
                new = advance(manifest, self.image, self.now, self.policy)
                self._note_eviction(manifest, new)
                if not self.is_delayed and self.is_stopping(new):
                    new = lifecycle.release(new, self.now)
                if new is not manifest:
                    is_busy = True
                    self._store(new)

    def _note_eviction(self, old: Manifest, new: Manifest) -> None:
        evicted = condition(status_of(new), "Evicted") or {}
        if evicted.get("status") != "True" or evicted == condition(status_of(old), "Evicted"):
            return
        self.record.evicted.append({"workload": _identity(new)[1], "reason": evicted["reason"]})

    def _workload(self, key: str) -> Manifest:
        return self.manifests[("Workload", key)]

    def _store(self, manifest: Manifest) -> None:
        self.manifests[_identity(manifest)] = manifest
        self.image.put(parse(manifest))

    def _has_work(self) -> bool:
        return bool(self.image.heads())

    def _visible(self) -> object:
        queues = sorted(self.image.cluster_queues)
        return (
            [(m["metadata"]["uid"], holds_quota(m), self.is_stopping(m)) for m in self.workloads()],
            [_uids(self.image.pending(queue)) for queue in queues],
            [_uids(self.image.parked(queue)) for queue in queues],
            len(self.record.newly_admitted) + len(self.record.preempted),
        )


def holds_quota(manifest: Manifest) -> bool:
    status = status_of(manifest)
    return is_true(status, "QuotaReserved") and not is_true(status, "Finished")


def _uids(workloads: list[Workload]) -> list[str]:
    return [workload.uid for workload in workloads]


def _identity(manifest: Manifest) -> tuple[str, str]:
    kind, name = manifest["kind"], name_of(manifest)
    if kind in _CLUSTER_SCOPED:
        return kind, name
    return kind, f"{manifest['metadata'].get('namespace', 'default')}/{name}"

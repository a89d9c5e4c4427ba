"""Random histories: whatever users, queue admins, jobs and crashes do, the laws hold after every step.

The audience of `Stage` checks most of them by itself; what is asked here is what needs a history: that a quiet world
stays quiet and leaves nothing idle, that a commit may lose any of its decisions, and that a restart at any moment
forgets nothing that matters.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from app.core.manifests import Manifest
from app.core.metadata import name_of, spec_of
from tests.laws.idle import nothing_idles
from tests.laws.stage import A_CYCLE_LATER, AT_ONCE, WHEN_TOLD, Stage
from tests.laws.strategies import (
    FAIR,
    QUEUES,
    queue,
    some_cohort,
    some_workload,
    towns,
)
from tests.property.strategies import COHORTS

STOPS = st.sampled_from(["None", "Hold", "HoldAndDrain"])


class Histories(RuleBasedStateMachine):
    stage: Stage
    made: int = 100

    @initialize(
        manifests=towns(),
        fair=FAIR,
        stopping=st.sampled_from([AT_ONCE, A_CYCLE_LATER, WHEN_TOLD]),
        overbook=st.booleans(),
    )
    def begin(self, manifests: list[Manifest], fair: Any, stopping: str, *, overbook: bool) -> None:
        self.stage = Stage(manifests, fair=fair, stopping=stopping, overbook=overbook)

    def _some(self, data: st.DataObject, among: list[str]) -> str:
        return data.draw(st.sampled_from(among))

    def _workloads(self, which: Callable[[Manifest], bool] = lambda _: True) -> list[str]:
        return [name_of(one) for one in self.stage.workloads() if which(one)]

    # The scheduler

    @rule()
    def cycle(self) -> None:
        self.stage.cycle()

    @rule(data=st.data())
    def cycle_that_loses_decisions(self, data: st.DataObject) -> None:
        uids = [one["metadata"]["uid"] for one in self.stage.workloads()]
        if uids:
            self.stage.refused = frozenset(data.draw(st.sets(st.sampled_from(uids))))
        self.stage.cycle()
        self.stage.refused = frozenset()

    @precondition(lambda self: self._workloads())
    @rule(data=st.data(), change=st.sampled_from(["ends", "goes", "moves", "queue", "cohort"]))
    def cycle_while_something_happens(self, data: st.DataObject, change: str) -> None:
        """Between deciding and committing, others write; the store's guards drop what that concerns."""
        stage, name = self.stage, self._some(data, self._workloads())
        new_queue = data.draw(queue(data.draw(st.sampled_from(QUEUES))))
        new_cohort = data.draw(some_cohort(data.draw(st.sampled_from(COHORTS))))
        stage.meanwhile = {
            "ends": lambda: stage.end(name),
            "goes": lambda: stage.remove("Workload", name),
            "moves": lambda: stage.edit("Workload", name, priority=3),
            "queue": lambda: stage.put(new_queue),
            "cohort": lambda: stage.put(new_cohort),
        }[change]
        stage.cycle()
        stage.meanwhile = None

    @rule()
    def restart(self) -> None:
        self.stage.restart()

    # Users and their jobs

    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        self.made += 1
        self.stage.add(data.draw(some_workload(f"w{self.made}")))

    @precondition(lambda self: self.stage.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self.stage.finish(self._some(data, self.stage.running))

    @precondition(lambda self: self.stage.running)
    @rule(data=st.data(), done=st.integers(1, 3))
    def finish_some_pods(self, data: st.DataObject, done: int) -> None:
        self.stage.reclaim(self._some(data, self.stage.running), done)

    @precondition(lambda self: self._workloads())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.stage.remove("Workload", self._some(data, self._workloads()))

    @precondition(lambda self: self._workloads(self.stage.is_stopping))
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        self.stage.stop(self._some(data, self._workloads(self.stage.is_stopping)))

    @precondition(lambda self: self._workloads())
    @rule(data=st.data(), priority=st.integers(0, 3))
    def change_priority(self, data: st.DataObject, priority: int) -> None:
        self.stage.edit("Workload", self._some(data, self._workloads()), priority=priority)

    @precondition(lambda self: self._workloads())
    @rule(data=st.data())
    def switch_on_or_off(self, data: st.DataObject) -> None:
        name = self._some(data, self._workloads())
        active = spec_of(self.stage.find("Workload", name)).get("active", True)
        self.stage.edit("Workload", name, active=not active)

    @precondition(lambda self: self.stage.running)
    @rule(data=st.data(), reason=st.sampled_from(["PodsReadyTimeout", "NodeFailures"]))
    def evict(self, data: st.DataObject, reason: str) -> None:
        self.stage.evict(self._some(data, self.stage.running), reason)

    # Queue admins

    @rule(data=st.data(), name=st.sampled_from(QUEUES))
    def edit_queue(self, data: st.DataObject, name: str) -> None:
        self.stage.put(data.draw(queue(name)))

    @rule(data=st.data(), name=st.sampled_from(COHORTS))
    def edit_cohort(self, data: st.DataObject, name: str) -> None:
        if ("Cohort", name) in self.stage.manifests and data.draw(st.booleans()):
            self.stage.remove("Cohort", name)
        else:
            self.stage.put(data.draw(some_cohort(name)))

    @rule(name=st.sampled_from(QUEUES), policy=STOPS)
    def stop_local_queue(self, name: str, policy: str) -> None:
        self.stage.edit("LocalQueue", name, stopPolicy=policy)

    @rule(seconds=st.integers(1, 5))
    def wait(self, seconds: int) -> None:
        self.stage.advance(seconds)

    # Time

    @rule()
    def settle(self) -> None:
        stage = self.stage.settle()
        if stage.is_quiet:
            decided = len(stage.record.newly_admitted), len(stage.record.preempted)
            stage.cycle()
            assert (len(stage.record.newly_admitted), len(stage.record.preempted)) == decided
            nothing_idles(stage)


TestHistories = Histories.TestCase

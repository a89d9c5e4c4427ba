"""Does the world come to rest where Kueue's own never does?

The family ``livelock`` holds scenarios in which Kueue lets workloads preempt each other for ever. Here the rules of the
service play them. There is nothing to compare with, so laws are checked: every settling ends by itself, no quota is
exceeded by an admission, and nobody is preempted more than twice for the same workload, as nothing is finished or
edited meanwhile.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from app.core.resources import FlavorResource
from tests.conformance.world import World, policy_of

_OFTEN = 2

_Overdrawn = set[tuple[str, FlavorResource]]


def difference(scenario: dict[str, Any]) -> str | None:
    """What went wrong first, if anything."""
    policy = policy_of(scenario.get("config"))
    world = _Watched(scenario, policy=replace(policy, break_loops=True, never_overbook=True))
    for place, step in enumerate(scenario["steps"]):
        world.record.preempted.clear()
        world.play(step)
        problem = _problem(world, step["op"])
        if problem is not None:
            return f"step {place} ({step['op']}) {problem}"
    return None


class _Watched(World):
    """Notes what queues take beyond what there is."""

    exceeded: str | None = None

    def _cycle(self) -> None:
        before = self._overdrawn()
        super()._cycle()
        for queue, fr in sorted(self._overdrawn() - before):
            self.exceeded = self.exceeded or f"quota of {queue} exceeded: {fr}"

    def _overdrawn(self) -> _Overdrawn:
        return {
            (name, fr)
            for name, node in self.image.tree.queues().items()
            for fr in node.usage
            if node.raw_available(fr) < 0
        }


def _problem(world: _Watched, op: str) -> str | None:
    if op == "settle" and not world.is_quiet:
        return "did not settle"
    pairs = Counter((one["by"], one["workload"]) for one in world.record.preempted)
    for (by, victim), times in sorted(pairs.items()):
        if times > _OFTEN:
            return f"{victim} was preempted {times} times for {by}"
    return world.exceeded

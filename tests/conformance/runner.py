"""Plays scenarios and keeps the score."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.conformance import compare, numbers, settling
from tests.conformance.vectors import Scenario, scenarios
from tests.conformance.world import Record, World, policy_of

LIVELOCK = "livelock"


@dataclass(slots=True)
class Outcome:
    """How one scenario went: its first difference, if any, and how many reasons agreed."""

    difference: str | None = None
    reasons_matched: int = 0
    reasons_total: int = 0
    odd_reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Score:
    """How one family went."""

    family: str
    passed: int = 0
    seconds: float = 0.0
    failures: list[tuple[str, str]] = field(default_factory=list)
    reasons_matched: int = 0
    reasons_total: int = 0
    odd_reasons: list[str] = field(default_factory=list)

    def line(self) -> str:
        shown = f"{self.family:22} {self.passed:4} passed {len(self.failures):4} failed"
        shown += f" {self.seconds:7.2f} s"
        if self.reasons_total:
            shown += f"   reasons {self.reasons_matched} of {self.reasons_total}"
        return shown


def run_family(family: str, path: Path, *, breaker: bool = False) -> Score:
    """Play a family; with the breaker of loops on, that of the livelocks must settle, all others stay as they are."""
    score = Score(f"{family} (settles)" if breaker and family == LIVELOCK else family)
    started = time.perf_counter()
    for scenario in scenarios(path):
        outcome = run(scenario, breaker=breaker)
        if outcome.difference is None:
            score.passed += 1
        else:
            score.failures.append((scenario["id"], outcome.difference))
        score.reasons_matched += outcome.reasons_matched
        score.reasons_total += outcome.reasons_total
        score.odd_reasons += [f"{scenario['id']} {odd}" for odd in outcome.odd_reasons]
    score.seconds = time.perf_counter() - started
    return score


def run(scenario: Scenario, *, breaker: bool = False) -> Outcome:
    """Play one scenario up to its first difference."""
    outcome = Outcome()
    if "steps" not in scenario:
        outcome.difference = next(numbers.differences(scenario), None)
        return outcome
    if breaker and scenario["id"].startswith(LIVELOCK):
        outcome.difference = settling.difference(scenario)
        return outcome
    policy = replace(policy_of(scenario.get("config")), break_loops=breaker)
    world = World(scenario, policy=policy)
    for place, (step, expected) in enumerate(
        zip(scenario["steps"], scenario["expect"], strict=True)
    ):
        world.play(step)
        if expected is None:
            continue
        difference = next(compare.differences(world, expected), None)
        if difference is not None:
            outcome.difference = f"step {place} ({step['op']}) {difference}"
            return outcome
        _count_reasons(world, expected, place, outcome)
        world.record = Record()
    return outcome


def _count_reasons(world: World, expected: Scenario, place: int, outcome: Outcome) -> None:
    for key, wanted, shown in compare.reasons(world, expected):
        outcome.reasons_total += 1
        if wanted == shown:
            outcome.reasons_matched += 1
        else:
            outcome.odd_reasons.append(f"step {place} {key}: expected {wanted}, shown {shown}")

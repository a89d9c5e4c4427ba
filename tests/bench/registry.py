"""Which benchmarks are there? A new one is a module with a function like these, and a line here.

It gets the wishes of whoever runs it and returns a report. A name before the slash stands for all behind it.
"""

from collections.abc import Callable, Mapping

from tests.bench import admissions, core, placement, reflector
from tests.bench.report import Report
from tests.bench.wishes import Wishes

Benchmark = Callable[[Wishes], Report]

BENCHMARKS: Mapping[str, Benchmark] = {
    "admissions/burst": admissions.burst,
    "admissions/churn": admissions.churn,
    "reflector/sink": reflector.sink,
    "reflector/intake": reflector.intake,
    "core/few": core.few,
    "core/many": core.many,
    "placement/single": placement.single,
}


def named(name: str) -> dict[str, Benchmark]:
    """The one of this name, or those of this group."""
    return {one: run for one, run in BENCHMARKS.items() if name in (one, one.partition("/")[0])}

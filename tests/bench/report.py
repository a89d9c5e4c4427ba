"""What does a benchmark say, and how is it shown?

A table for people, then one line of JSON for programs. Each line of a table is a number with a name and a unit; the
JSON holds the same numbers under the same names, and the machine they were seen on.
"""

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata

import psutil

Number = float | int


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: Number
    unit: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        digits = 0 if abs(self.value) >= 100 else 1 if abs(self.value) >= 10 else 3
        return f"{self.value:,.{digits}f}"


@dataclass(slots=True)
class Report:
    """Filled by a benchmark, line by line."""

    name: str
    figures: list[Figure] = field(default_factory=list)

    def add(self, name: str, value: Number, unit: str = "", note: str = "") -> None:
        self.figures.append(Figure(name, value, unit, note))

    def show(self) -> None:
        width = max((len(one.name) for one in self.figures), default=0)
        print(f"\n{self.name}")
        for one in self.figures:
            print(f"  {one.name:<{width}}  {one.text:>10} {one.unit:<8} {one.note}".rstrip())
        numbers = {one.name: round(one.value, 4) for one in self.figures}
        print(json.dumps({"benchmark": self.name, "machine": machine(), "numbers": numbers}))


def machine() -> dict[str, str | int | float]:
    """Facts that a figure means nothing without."""
    return {
        "cores": os.cpu_count() or 0,
        "cpu": _cpu_model(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "asyncpg": metadata.version("asyncpg"),
        "aiohttp": metadata.version("aiohttp"),
        "uvloop": metadata.version("uvloop"),
    }


def quantile(values: Iterable[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def middle(reports: Sequence[Report]) -> Report:
    """Of several runs of one benchmark, the median of every figure."""
    found = Report(f"{reports[0].name} (median of {len(reports)})")
    for place, one in enumerate(reports[0].figures):
        value = statistics.median(report.figures[place].value for report in reports)
        found.add(one.name, value, one.unit, one.note)
    return found


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - Linux only
            models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model")]
    except OSError:
        return platform.processor()
    return next((model for model in models if not model.isdigit()), platform.processor())

"""`python -m tests.bench [NAME...] [--quick] [--size N] [--runs N]`: run benchmarks and print what they saw."""

import argparse
from pathlib import Path

from app.observability import logging
from tests.bench.registry import BENCHMARKS, Benchmark, named
from tests.bench.report import middle
from tests.bench.wishes import Wishes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--size", type=int, help="how many jobs, events ...")
    parser.add_argument("--runs", type=int, default=1, help="of several, show the medians as well")
    parser.add_argument("--spy", type=Path, help="folder for recordings by py-spy, if installed")
    given = parser.parse_args()
    chosen: dict[str, Benchmark] = {}
    for name in given.names or BENCHMARKS:
        found = named(name)
        if not found:
            parser.error(f"no benchmark {name}: there are {', '.join(BENCHMARKS)}")
        chosen |= found
    logging.setup("ERROR", "text")
    wishes = Wishes(quick=given.quick, size=given.size, spy=given.spy)
    for benchmark in chosen.values():
        _run(benchmark, wishes, given.runs)


def _run(benchmark: Benchmark, wishes: Wishes, runs: int) -> None:
    reports = []
    for _ in range(runs):
        reports.append(benchmark(wishes))
        reports[-1].show()
    if runs > 1:
        middle(reports).show()


if __name__ == "__main__":
    main()

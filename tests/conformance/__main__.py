"""``python -m tests.conformance DIR [FAMILY ...] [--reasons] [--breaker]``; exit status 1 if any scenario fails."""

import argparse
import sys
from pathlib import Path

from tests.conformance.runner import run_family
from tests.conformance.vectors import UnknownVectors, choose

_SHOWN = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder of .jsonl or .jsonl.gz vector files")
    parser.add_argument("families", nargs="*", help="which of them; all when none is named")
    parser.add_argument("--reasons", action="store_true", help="show reasons that differ")
    parser.add_argument("--breaker", action="store_true", help="break loops of preemptions")
    told = parser.parse_args()
    try:
        chosen = choose(told.folder, told.families)
    except UnknownVectors as problem:
        print(problem, file=sys.stderr)
        return 2
    passed = failed = 0
    for family, path in chosen.items():
        score = run_family(family, path, breaker=told.breaker)
        passed += score.passed
        failed += len(score.failures)
        print(score.line(), flush=True)
        for scenario, difference in score.failures[:_SHOWN]:
            print(f"    {scenario}: {difference[:600]}")
        for odd in score.odd_reasons[:_SHOWN] if told.reasons else ():
            print(f"    reason: {odd}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

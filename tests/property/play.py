"""Plays a fixed set of contended worlds and prints every decision; run by the hash-seed law."""

from app.core.policy import BOTH_STRATEGIES, Policy
from tests.builders import (
    cluster_queue,
    cohort,
    flavor,
    image,
    local_queue,
    run,
    workload,
)


def main() -> None:
    preemption = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    quota = {name: {"cpu": "4", "memory": "8Gi", "gpu": "2"} for name in ("one", "two", "three")}
    for policy in (Policy(), Policy(fair_sharing=BOTH_STRATEGIES)):
        of = image(
            *(flavor(name) for name in quota),
            cohort("left", "root"),
            cohort("right", "root"),
            *(
                cluster_queue(
                    f"q{i}", quota, cohort=("left", "right")[i % 2], preemption=preemption
                )
                for i in range(6)
            ),
            *(local_queue(f"q{i}", f"q{i}") for i in range(6)),
            *(
                workload(
                    f"w{i}",
                    f"q{i * i % 6}",
                    cpu=str(i % 5),
                    memory=f"{i % 3}Gi",
                    gpu=str(i % 3),
                    priority=i % 4,
                    age=i % 7,
                )
                for i in range(60)
            ),
        )
        for second in range(20):
            print(run(of, policy, after=second))


if __name__ == "__main__":
    main()

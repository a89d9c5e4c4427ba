"""Plays seeded histories and prints every decision; run by the law of determinism under two hash seeds."""

import random
import sys

from app.core.manifests import Manifest
from app.core.policy import BOTH_STRATEGIES
from tests.builders import cluster_queue, cohort, flavor, local_queue, workload
from tests.laws.stage import A_CYCLE_LATER, AT_ONCE, Stage

QUEUES = tuple(f"q{i}" for i in range(6))


def town(dice: random.Random) -> list[Manifest]:
    quota = [
        {f: {"cpu": dice.randint(0, 4), "gpu": dice.randint(0, 2)} for f in ("one", "two")}
        for _ in QUEUES
    ]
    rules = {
        "withinClusterQueue": dice.choice(["LowerPriority", "LowerOrNewerEqualPriority"]),
        "reclaimWithinCohort": dice.choice(["LowerPriority", "Any"]),
    }
    return [
        *(flavor(name) for name in ("one", "two")),
        *(cohort(name, "root") for name in ("left", "right")),
        *(
            cluster_queue(name, quota[i], cohort=("left", "right")[i % 2], preemption=rules)
            for i, name in enumerate(QUEUES)
        ),
        *(local_queue(name, name) for name in QUEUES),
    ]


def job(dice: random.Random, number: int) -> Manifest:
    return workload(
        f"w{number}",
        dice.choice(QUEUES),
        cpu=dice.randint(0, 2),
        gpu=dice.randint(0, 1),
        pods=dice.randint(1, 2),
        priority=dice.randint(0, 2),
        age=dice.randint(0, 3),
    )


def play(seed: int) -> None:
    dice = random.Random(seed)
    objects = [*town(dice), *(job(dice, number) for number in range(30))]
    dice_of_order = random.Random(int(sys.argv[1]))
    dice_of_order.shuffle(objects)
    stage = Stage(
        objects,
        fair=BOTH_STRATEGIES if seed % 2 else None,
        stopping=A_CYCLE_LATER if seed % 3 else AT_ONCE,
        watched=False,
    )
    for number in range(30, 40):
        stage.add(job(dice, number)).cycle()
        print(repr(stage.last))
        if stage.running:
            stage.finish(dice.choice(stage.running))
    print(stage.running, stage.waiting)


if __name__ == "__main__":
    for seed in range(8):
        play(seed)

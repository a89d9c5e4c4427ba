"""Section S: shares that hide a claim. What concerns decayed usage is not here: there is no usage-based sharing."""

from app.core.policy import BOTH_STRATEGIES
from tests.builders import cluster_queue, flavor, local_queue
from tests.known_failures.shorthand import w
from tests.laws.stage import Stage


def test_borrowing_one_flavor_does_not_weaken_the_claim_to_another() -> None:
    """kueue#9533, #10201, #9593: on what is its own a queue goes first and reclaims, whatever its share."""
    quotas = {"a": (0, 4), "b": (0, 0), "lender": (100, 0)}
    stage = Stage(
        flavor("x", nodeLabels={"pool": "x"}),
        flavor("y", nodeLabels={"pool": "y"}),
        *(
            cluster_queue(
                name,
                {"x": {"gpu": x}, "y": {"gpu": y}},
                cohort="c",
                preemption={"reclaimWithinCohort": "Any"},
            )
            for name, (x, y) in quotas.items()
        ),
        *(local_queue(name, name) for name in quotas),
        fair=BOTH_STRATEGIES,
    )
    on_x, on_y = ({"nodeSelector": {"pool": pool}} for pool in "xy")
    stage.add(w("a0", 90, template=on_x), w("b0", 3, template=on_y)).settle()
    assert stage.running == ["a0", "b0"]

    stage.add(w("b1", 1, t=1, template=on_y), w("a1", 4, t=2, template=on_y)).cycle()
    assert [one.by_name for one in stage.last.preemptions] == ["a1"]

    stage.settle()
    assert stage.running == ["a0", "a1"]
    assert (stage.evictions("b0"), stage.evictions("a0")) == (1, 0)

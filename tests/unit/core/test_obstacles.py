"""The whole answer: what is lacking where, who has it, and who comes first."""

from app.core.image import Image
from app.core.manifests import parse
from app.core.obstacles import MOST_AHEAD, MOST_HOLDERS, why
from app.core.policy import DEFAULT, PodsReady, Policy
from tests.builders import (
    cluster_queue,
    cohort,
    flavor,
    image,
    local_queue,
    run,
    workload,
)


def tree() -> Image:
    """Team b uses what team a would borrow: eight of the ten that the company has."""
    of = image(
        flavor(),
        cohort("company", quota={"default": {"cpu": "4"}}),
        cluster_queue("a", {"default": {"cpu": "2"}}, cohort="company"),
        cluster_queue("b", {"default": {"cpu": "4"}}, cohort="company"),
        local_queue("main", "a"),
        local_queue("theirs", "b"),
    )
    for number, cpu in enumerate((1, 3, 2, 2)):
        of.put(parse(workload(f"b{number}", "theirs", cpu=str(cpu), age=50 - number)))
        run(of)
    return of


def test_who_holds_what_is_lacking_largest_first() -> None:
    of = tree()
    of.put(parse(workload("w", cpu="5")))
    run(of)

    found = why(of, DEFAULT, of.workloads["default", "w"])

    assert found is not None
    assert found.explanation.reason == "WaitingForQuota"
    (obstacle,) = found.obstacles
    assert (obstacle.fact.asked, obstacle.fact.available) == (5000, 2000)
    assert obstacle.fact.blocked_by == "company"
    assert (obstacle.capacity, obstacle.used) == (10000, 8000)
    assert [(one.name, one.amount, one.cluster_queue) for one in obstacle.holders] == [
        ("b1", 3000, "b"),
        ("b2", 2000, "b"),
        ("b3", 2000, "b"),
        ("b0", 1000, "b"),
    ]
    assert found.position is None  # parked until something changes


def test_lists_are_bounded_and_say_how_much_is_left_out() -> None:
    of = image(
        flavor(),
        cluster_queue("cq", {"default": {"cpu": "9"}}, queueingStrategy="StrictFIFO"),
        local_queue("main", "cq"),
    )
    for number in range(9):
        of.put(parse(workload(f"r{number}", cpu="1", age=99 - number)))
        run(of)
    for number in range(40):
        of.put(parse(workload(f"w{number:02}", cpu="1", age=40 - number)))

    found = why(of, DEFAULT, of.workloads["default", "w30"])

    assert found is not None
    assert (found.position, found.in_line) == (31, 40)
    assert found.ahead == tuple(f"uid-w{number:02}" for number in range(MOST_AHEAD))
    (obstacle,) = found.obstacles
    assert (len(obstacle.holders), obstacle.more_holders) == (MOST_HOLDERS, 9 - MOST_HOLDERS)
    first = why(of, DEFAULT, of.workloads["default", "w00"])
    assert first is not None
    assert (first.position, first.ahead) == (1, ())


def test_what_no_quota_can_cure_names_no_holder() -> None:
    of = tree()
    of.put(parse(workload("w", gpu="1")))
    found = why(of, DEFAULT, of.workloads["default", "w"])
    assert found is not None
    assert [one.holders for one in found.obstacles] == [()]
    assert found.obstacles[0].fact.blocked_by is None


def test_who_holds_quota_or_has_no_queue() -> None:
    of = tree()
    of.put(parse(workload("lost", "nowhere")))
    assert why(of, DEFAULT, of.workloads["default", "b0"]) is None
    lost = why(of, DEFAULT, of.workloads["default", "lost"])
    assert lost is not None
    assert (lost.cluster_queue, lost.obstacles) == (None, ())


def test_a_blocked_admission_is_said_so() -> None:
    rules = Policy(pods_ready=PodsReady(block_admission=True))
    of = tree()
    of.put(parse(workload("w", cpu="1")))
    found = why(of, rules, of.workloads["default", "w"])
    assert found is not None
    assert found.explanation.reason == "WaitingForPodsReady"

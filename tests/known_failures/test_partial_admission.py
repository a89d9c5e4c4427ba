"""Section A: smaller than asked for, again and again."""

import pytest

from tests.builders import cluster_queue, local_queue, workload
from tests.known_failures.shorthand import FLAVOR, cq, w
from tests.laws.stage import WHEN_TOLD, Stage


def test_what_was_admitted_in_part_is_admitted_in_part_again() -> None:
    """kueue#3151, #3206: the whole count is asked for each time, the admitted one is charged."""
    stage = Stage(
        FLAVOR,
        cluster_queue("a", {"default": {"cpu": 9}}),
        local_queue("a", "a"),
        workload("a1", "a", cpu=1, pods=10, pod_set={"minCount": 8}),
        stopping=WHEN_TOLD,
    ).settle()
    for _ in range(3):
        assert (stage.admission("a1")["count"], stage.used("a", "cpu")) == (9, 9000)

        stage.evict("a1", "NodeFailures").stop("a1")
        assert stage.used("a", "cpu") == 0
        assert stage.find("Workload", "a1")["spec"]["podSets"][0]["count"] == 10
        stage.settle()


@pytest.mark.parametrize(
    ("protected", "count", "victims"), [(0, 6, 3), (1, 4, 2), (2, 2, 1)], ids="{}".format
)
def test_as_many_are_preempted_as_the_admitted_size_needs(
    protected: int, count: int, victims: int
) -> None:
    """kueue#3205. As Kueue: the whole size first, preempting if need be; only then a smaller one."""
    low = [w(f"a{i}", 2, p=20 if i < protected else 0, t=i) for i in range(3)]
    stage = Stage(FLAVOR, cq("a", 6, within="LowerPriority"), low).settle()

    stage.add(w("a9", 1, p=10, t=9, pods=6, pod_set={"minCount": 2})).settle()

    assert stage.admission("a9")["count"] == count
    assert len(stage.record.preempted) == victims
    assert stage.used("a") == 6

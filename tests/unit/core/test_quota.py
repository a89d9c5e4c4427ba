"""The cohort tree in worked numbers."""

import pytest

from app.core.fairness import share
from app.core.image import Image
from app.core.node import Node
from app.core.resources import FlavorResource
from tests.builders import cluster_queue, cohort, flavor, image

GPU = FlavorResource("default", "gpu")


def node(of: Image, name: str) -> Node:
    found = of.tree.queue(name) or of.tree.cohort(name)
    assert found is not None
    return found


def gpus(*amounts: object) -> dict[str, dict[str, object]]:
    return {"default": {"gpu": amounts if len(amounts) > 1 else amounts[0]}}


@pytest.fixture
def lending() -> Image:
    """Root R without quota of its own; A may borrow 2 and lends 4 of its 10; B has 10 and no limits."""
    return image(
        flavor(),
        cluster_queue("a", gpus("10", "2", "4"), cohort="r"),
        cluster_queue("b", gpus("10"), cohort="r"),
    )


def test_what_is_kept_lent_and_possible(lending: Image) -> None:
    a, b, r = (node(lending, name) for name in "abr")

    assert a.guaranteed[GPU] == 6
    assert GPU not in b.guaranteed
    assert r.subtree[GPU] == 14
    assert (a.potential(GPU), b.potential(GPU)) == (12, 14)


@pytest.mark.parametrize(
    ("a_used", "b_used", "root_usage", "a_available", "b_available"),
    [(7, 0, 1, 5, 13), (7, 10, 11, 3, 3), (7, 12, 13, 1, 1)],
)
def test_usage_rises_only_beyond_what_is_guaranteed(
    lending: Image, a_used: int, b_used: int, root_usage: int, a_available: int, b_available: int
) -> None:
    lending.tree.charge("a", {GPU: a_used})
    lending.tree.charge("b", {GPU: b_used})

    assert node(lending, "r").used(GPU) == root_usage
    assert node(lending, "a").available(GPU) == a_available
    assert node(lending, "b").available(GPU) == b_available


def test_share_is_what_is_borrowed_of_what_could_be_lent(lending: Image) -> None:
    lending.tree.charge("a", {GPU: 7})
    lending.tree.charge("b", {GPU: 12})

    assert share(node(lending, "b")).rounded == 143
    assert share(node(lending, "a")).rounded == 0


def test_weight_divides_the_share_and_zero_makes_it_infinite(lending: Image) -> None:
    lending.tree.charge("b", {GPU: 12})
    b = node(lending, "b")

    b.weight_nanos = 2 * 10**9
    assert share(b).rounded == 72
    halved = share(b)
    b.weight_nanos = 0
    assert share(b).is_infinite
    assert share(b) > halved


@pytest.mark.parametrize(
    ("asked", "height", "may_reclaim"), [(4, 0, True), (6, 1, True), (10, 2, False), (17, 2, False)]
)
def test_borrow_height_is_that_of_the_lowest_subtree_that_holds_it(
    asked: int, height: int, *, may_reclaim: bool
) -> None:
    tree = image(
        flavor(),
        cohort("l", "r"),
        cohort("m", "r"),
        cluster_queue("a", gpus("4"), cohort="l"),
        cluster_queue("b", gpus("4"), cohort="l"),
        cluster_queue("c", gpus("8"), cohort="m"),
    )

    assert node(tree, "a").borrow_height(GPU, asked) == (height, may_reclaim)


def test_a_limit_on_a_cohort_binds_its_whole_subtree() -> None:
    tree = image(
        flavor(),
        cohort("team", "all", gpus("0", "3")),
        cluster_queue("mine", gpus("2"), cohort="team"),
        cluster_queue("theirs", gpus("10"), cohort="all"),
    )

    assert node(tree, "mine").available(GPU) == 5
    assert node(tree, "mine").blocker(GPU, 6).name == "team"


def test_a_tree_in_debt_offers_nothing_but_remembers_how_much_it_owes(lending: Image) -> None:
    lending.tree.charge("b", {GPU: 20})

    assert node(lending, "b").raw_available(GPU) == -6
    assert node(lending, "b").available(GPU) == 0


def test_a_cohort_that_is_its_own_ancestor_cuts_off_everything_below_until_mended() -> None:
    tree = image(
        flavor(),
        cohort("x", "y"),
        cohort("y", "x"),
        cluster_queue("a", gpus("1"), cohort="x"),
        cluster_queue("b", gpus("1"), cohort="z"),
    )

    assert tree.why_inactive("a") == "CohortCycle"
    assert tree.why_inactive("b") is None

    tree.remove("Cohort", None, "y")
    assert tree.why_inactive("a") is None
    assert node(tree, "a").root.name == "y"


def test_a_cohort_without_an_object_lives_as_long_as_it_is_named() -> None:
    tree = image(flavor(), cluster_queue("a", gpus("1"), cohort="implied"))
    assert tree.tree.cohort("implied") is not None

    tree.remove("ClusterQueue", None, "a")
    assert tree.tree.cohort("implied") is None

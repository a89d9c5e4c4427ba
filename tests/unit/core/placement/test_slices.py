"""Slices in up to three layers, and groups with a leader."""

import pytest

from app.core.topology import HOSTNAME
from tests.unit.core.placement.cluster import cluster, grid, hosts, node, pods, where


def test_every_slice_stays_in_one_domain_of_its_level() -> None:
    sites = cluster(node("a/a1/h1", 3), node("a/a1/h2", 2), node("a/a2/h3", 3), node("a/a2/h4", 4))

    assert hosts(sites, pods(8, required="block", slices=[("rack", 4)])) == {
        "h1": 2,
        "h2": 2,
        "h3": 3,
        "h4": 1,
    }


def test_slices_alone_may_span_blocks() -> None:
    sites = cluster(*grid(2, 1, 2, cpu=3))

    assert hosts(sites, pods(6, slices=[(HOSTNAME, 3)])) == {"b0r0h0": 3, "b0r0h1": 3}
    assert hosts(sites, pods(9, slices=[(HOSTNAME, 3)])) == {
        "b0r0h0": 3,
        "b0r0h1": 3,
        "b1r0h0": 3,
    }


def test_what_does_not_fill_a_slice_is_not_used() -> None:
    sites = cluster(*grid(1, 1, 4, cpu=3))

    assert hosts(sites, pods(8, required="rack", slices=[(HOSTNAME, 2)])) == {
        "b0r0h0": 2,
        "b0r0h1": 2,
        "b0r0h2": 2,
        "b0r0h3": 2,
    }
    assert hosts(sites, pods(10, required="rack", slices=[(HOSTNAME, 2)])) == (
        'topology "racks" allows to fit only 4 out of 5 slice(s)'
    )


def test_inner_layers_hold_below_the_outer_one() -> None:
    sites = cluster(*grid(1, 2, 3, cpu=3))
    layers = [("rack", 4), (HOSTNAME, 2)]

    assert hosts(sites, pods(8, required="block", slices=layers)) == {
        "b0r0h0": 2,
        "b0r0h1": 2,
        "b0r1h0": 2,
        "b0r1h1": 2,
    }
    assert hosts(sites, pods(12, required="block", slices=layers)) == (
        'topology "racks" doesn\'t allow to fit; 2/3 slice(s) fit on level rack; '
        f"6/6 slice(s) fit on level {HOSTNAME}"
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"required": "rack", "slices": [("block", 2)]}, "podset slice topology block is above"),
        ({"slices": [("row", 2)]}, "no requested topology level for slices: row"),
        ({"slices": [("rack", 0)]}, "slice size not provided"),
        ({"slices": [("rack", 4), ("block", 2)]}, "must be at a lower level than rack"),
        ({"slices": [("rack", 4), (HOSTNAME, 3)]}, "must evenly divide parent layer size 4"),
        ({"slices": [("rack", 4), ("row", 2)]}, "level for additional slice layer: row"),
        ({"slices": [("rack", 3)]}, "4 pods are no whole slices of 3"),
    ],
)
def test_layers_that_do_not_nest_are_refused(asked: dict[str, object], message: str) -> None:
    assert message in str(hosts(cluster(*grid(1, 2, 2)), pods(4, **asked)))


def test_a_leader_shares_the_domain_of_its_workers() -> None:
    sites = cluster(node("a/a1/h1", 4), node("a/a2/h2", 4), node("a/a2/h3", 1))
    leader = pods(1, 1, name="leader", required="rack", group="g")
    workers = pods(4, 1, name="workers", required="rack", group="g")

    assert where(sites, leader, workers) == {
        "leader": {"h2": 1},
        "workers": {"h2": 3, "h3": 1},
    }


def test_the_smaller_pod_set_leads_and_on_a_tie_the_second() -> None:
    sites = cluster(node("a/a1/h1", 8, gpu=1))
    one = pods(1, 1, name="one", required="rack", group="g")
    other = pods(1, 1, name="other", required="rack", group="g", requests={"gpu": 1})

    assert where(sites, one, other) == {"one": {"h1": 1}, "other": {"h1": 1}}
    many = pods(9, 1, name="many", required="rack", group="g")
    assert where(sites, one, many) == 'topology "racks" allows to fit only 8 out of 9 pod(s)'


def test_a_leader_that_fits_nowhere_fails_the_group() -> None:
    sites = cluster(node("a/a1/h1", 4))
    leader = pods(1, 9, name="leader", required="rack", group="g")
    workers = pods(2, 1, name="workers", required="rack", group="g")

    assert isinstance(where(sites, leader, workers), str)


def test_later_pod_sets_see_what_earlier_ones_took() -> None:
    sites = cluster(node("a/a1/h1", 4), node("a/a2/h2", 3))

    assert where(
        sites, pods(3, name="one", required="rack"), pods(4, name="two", required="rack")
    ) == {
        "one": {"h2": 3},
        "two": {"h1": 4},
    }
    assert where(
        sites, pods(4, name="one", required="rack"), pods(4, name="two", required="rack")
    ) == (
        'topology "racks" allows to fit only 3 out of 4 pod(s). '
        'Total nodes: 2; excluded: resource "cpu": 1'
    )

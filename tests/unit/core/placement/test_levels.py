"""Required, preferred and unconstrained levels."""

from app.core.model import Node
from tests.unit.core.placement.cluster import cluster, grid, hosts, node, pods


def _uneven() -> list[Node]:
    """Block a: racks of 3 + 3 and 4; block b: one rack of 8."""
    return [
        node("a/a1/h1", 3),
        node("a/a1/h2", 3),
        node("a/a2/h3", 4),
        node("b/b1/h4", 8),
    ]


def test_required_takes_the_tightest_domain_that_holds_everything() -> None:
    assert hosts(cluster(*_uneven()), pods(5, required="rack")) == {"h1": 3, "h2": 2}
    assert hosts(cluster(*_uneven()), pods(4, required="rack")) == {"h3": 4}
    assert hosts(cluster(*_uneven()), pods(7, required="rack")) == {"h4": 7}


def test_required_fails_when_no_single_domain_holds_it() -> None:
    assert hosts(cluster(*_uneven()), pods(9, required="rack")) == (
        'topology "racks" allows to fit only 8 out of 9 pod(s)'
    )


def test_required_within_a_block_uses_as_few_racks_as_it_can() -> None:
    assert hosts(cluster(*_uneven()), pods(9, required="block")) == {"h1": 3, "h2": 2, "h3": 4}


def test_preferred_climbs_and_at_the_top_spans_several_domains() -> None:
    assert hosts(cluster(*_uneven()), pods(6, preferred="rack")) == {"h1": 3, "h2": 3}
    assert hosts(cluster(*_uneven()), pods(10, preferred="rack")) == {"h1": 3, "h2": 3, "h3": 4}
    assert hosts(cluster(*_uneven()), pods(12, preferred="rack")) == {"h3": 4, "h4": 8}


def test_unconstrained_fills_the_smallest_hosts_first() -> None:
    assert hosts(cluster(*_uneven()), pods(3)) == {"h1": 3}
    assert hosts(cluster(*_uneven()), pods(9)) == {"h1": 3, "h2": 3, "h3": 3}


def test_without_enough_room_the_message_counts_what_fits() -> None:
    assert hosts(cluster(*_uneven()), pods(20)) == (
        'topology "racks" allows to fit only 18 out of 20 pod(s)'
    )


def test_an_unknown_level_is_named() -> None:
    assert hosts(cluster(*_uneven()), pods(1, required="row")) == "no requested topology level: row"


def test_without_nodes_the_level_has_no_domains() -> None:
    assert hosts(cluster(), pods(1, required="rack")) == "no topology domains at level: rack"


def test_no_pods_need_no_place() -> None:
    assert hosts(cluster(*_uneven()), pods(0, required="rack")) == {}


def test_equals_are_taken_in_the_order_of_their_paths() -> None:
    sites = cluster(*reversed(grid(2, 2, 2)))

    assert hosts(sites, pods(4, required="rack")) == {"b0r0h0": 4}
    assert hosts(sites, pods(8, required="rack")) == {"b0r0h0": 4, "b0r0h1": 4}


def test_every_pod_takes_one_of_the_places_for_pods() -> None:
    crowded = node("a/a1/h1", 100, pods=2)

    assert hosts(cluster(crowded), pods(3, required="block")) == (
        'topology "racks" allows to fit only 2 out of 3 pod(s)'
    )


def test_where_the_lowest_level_is_no_host_domains_are_named_by_their_path() -> None:
    sites = cluster(*grid(1, 2, 2), levels=("block", "rack"))

    assert hosts(sites, pods(8, required="rack")) == {"b0/b0r0": 8}
    assert hosts(sites, pods(9, required="block")) == {"b0/b0r0": 8, "b0/b0r1": 1}

"""An even spread over few domains, where it is wanted (KEP-2724, off by default)."""

from app.core.placement.gang import Terms
from tests.unit.core.placement.cluster import cluster, grid, hosts, node, pods, where

EVENLY = Terms(balanced=True)


def test_pods_are_spread_evenly_over_as_few_racks_as_it_takes() -> None:
    sites = cluster(*grid(1, 3, 2, cpu=4))

    assert hosts(sites, pods(10, preferred="rack")) == {"b0r0h0": 4, "b0r0h1": 4, "b0r1h0": 2}
    assert hosts(sites, pods(10, preferred="rack"), EVENLY) == {
        "b0r0h0": 4,
        "b0r0h1": 3,
        "b0r1h0": 3,
    }


def test_everything_stays_below_one_domain_of_the_level_above() -> None:
    sites = cluster(*grid(2, 2, 2, cpu=2))
    found = hosts(sites, pods(8, preferred="rack"), EVENLY)

    assert found == {"b0r0h0": 2, "b0r0h1": 2, "b0r1h0": 2, "b0r1h1": 2}


def test_what_cannot_be_balanced_is_packed() -> None:
    sites = cluster(node("a/a1/h1", 3), node("b/b1/h2", 3))

    assert hosts(sites, pods(5, preferred="rack"), EVENLY) == {"h1": 3, "h2": 2}


def test_required_levels_are_never_balanced() -> None:
    sites = cluster(*grid(1, 2, 2, cpu=4))
    gang = pods(6, required="block")

    assert hosts(sites, gang, EVENLY) == hosts(sites, gang)


def test_a_leader_finds_a_place_beside_its_share() -> None:
    sites = cluster(*grid(1, 1, 3, cpu=4))
    leader = pods(1, 1, name="leader", preferred="rack", group="g")
    workers = pods(6, 1, name="workers", preferred="rack", group="g")

    assert where(sites, leader, workers, terms=EVENLY) == {
        "leader": {"b0r0h0": 1},
        "workers": {"b0r0h0": 3, "b0r0h1": 3},
    }

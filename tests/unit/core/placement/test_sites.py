"""What changes when nodes do, and who sees what is placed where."""

from app.core.placement.gang import EMPTY, has_room, place
from app.core.placement.misfit import Misfit
from app.core.selectors import Taint
from app.core.topology import HOSTNAME, TopologyAssignment
from tests.unit.core.placement.cluster import cluster, grid, hosts, node, pods, settle

FULL = 'topology "racks" doesn\'t allow to fit any of 4 pod(s)'


def _lacking_cpu(nodes: int) -> str:
    return f'{FULL}. Total nodes: {nodes}; excluded: resource "cpu": {nodes}'


def test_what_is_placed_is_taken_until_it_leaves() -> None:
    sites = cluster(node("a/a1/h1"))
    gang = pods(4, required="rack")
    placed = place(sites, [gang])
    assert not isinstance(placed, Misfit)
    taken = [gang.occupying(placed["main"])]

    sites.occupy(taken)
    assert hosts(sites, gang) == _lacking_cpu(1)
    sites.occupy(taken, -1)
    assert hosts(sites, gang) == {"h1": 4}


def test_an_empty_cluster_is_imagined_with_earlier_pod_sets_in_it() -> None:
    sites = cluster(node("a/a1/h1"))
    settle(sites, pods(4, required="rack"))

    assert hosts(sites, pods(4, required="rack"), terms=EMPTY) == {"h1": 4}
    both = [pods(3, name="one", required="rack"), pods(3, name="two", required="rack")]
    found = place(sites, both, EMPTY)
    assert isinstance(found, Misfit)
    assert found.pod_set == "two"


def test_a_trial_takes_everything_back() -> None:
    sites = cluster(*grid(1, 1, 2))
    gang = pods(8, required="rack")
    with sites.trial():
        settle(sites, pods(4, required="rack"))
        with sites.trial():
            settle(sites, pods(4, required="rack"))
            assert isinstance(hosts(sites, pods(1, required="rack")), str)
        assert hosts(sites, pods(4, required="rack")) == {"b0r0h1": 4}

    assert hosts(sites, gang) == {"b0r0h0": 4, "b0r0h1": 4}


def test_hosts_are_shared_by_all_flavors_that_know_them() -> None:
    sites = cluster(node("a/a1/h1"), flavors=("one", "two"))
    settle(sites, pods(4, required="rack", flavor="one"))

    assert hosts(sites, pods(4, required="rack", flavor="two")) == _lacking_cpu(1)


def test_other_domains_belong_to_their_flavor() -> None:
    sites = cluster(node("a/a1/h1"), flavors=("one", "two"), levels=("block", "rack"))
    settle(sites, pods(4, required="rack", flavor="one"))

    assert hosts(sites, pods(4, required="rack", flavor="two")) == {"a/a1": 4}


def test_nodes_of_other_labels_or_without_a_level_do_not_belong() -> None:
    sites = cluster(
        node("a/a1/h1"), node("a/a1/h2", labels={"pool": "gpu"}), node_labels={"pool": "gpu"}
    )
    lost = node("a/a1/h3", labels={"pool": "gpu"})
    del lost.labels["rack"]  # type: ignore[attr-defined]
    sites.put_node(lost)

    assert hosts(sites, pods(8)) == 'topology "racks" allows to fit only 4 out of 8 pod(s)'


def test_a_node_that_goes_and_comes_back_still_holds_its_pods() -> None:
    sites = cluster(*grid(1, 1, 2))
    settle(sites, pods(4, required="rack"))
    sites.put_node(node("b0/b0r0/b0r0h0", ready=False))
    assert hosts(sites, pods(4)) == {"b0r0h1": 4}
    sites.put_node(node("b0/b0r0/b0r0h0"))

    assert hosts(sites, pods(8)) == (
        'topology "racks" allows to fit only 4 out of 8 pod(s). '
        'Total nodes: 2; excluded: resource "cpu": 1'
    )


def test_a_node_may_grow_move_and_be_tainted() -> None:
    sites = cluster(*grid(1, 2, 1))
    assert (
        hosts(sites, pods(8, required="rack"))
        == 'topology "racks" allows to fit only 4 out of 8 pod(s)'
    )
    sites.put_node(node("b0/b0r0/b0r0h0", 8))
    assert hosts(sites, pods(8, required="rack")) == {"b0r0h0": 8}
    sites.put_node(node("b0/b0r1/b0r0h0", 8))
    assert hosts(sites, pods(12, required="rack")) == {"b0r0h0": 8, "b0r1h0": 4}
    sites.put_node(node("b0/b0r1/b0r0h0", 8, taints=(Taint(key="x", effect="NoExecute"),)))
    assert hosts(sites, pods(4, required="rack")) == {"b0r1h0": 4}
    sites.remove_node("b0r1h0")
    assert "taint" in str(hosts(sites, pods(4, required="rack")))


def test_pods_of_others_take_room_even_in_an_empty_cluster() -> None:
    sites = cluster(node("a/a1/h1"))
    sites.put_others("h1", {"cpu": 2, "pods": 1})
    assert hosts(sites, pods(4, required="rack"), terms=EMPTY) == (
        'topology "racks" allows to fit only 2 out of 4 pod(s)'
    )
    sites.put_others("h1", {})

    assert hosts(sites, pods(4, required="rack")) == {"h1": 4}


def test_room_is_judged_where_the_pods_are_to_go() -> None:
    sites = cluster(*grid(1, 1, 2))
    gang = pods(4)

    def at(host: str, count: int) -> bool:
        there = TopologyAssignment(levels=(HOSTNAME,), domains=(((host,), count),))
        return has_room(sites, [gang.occupying(there)])

    assert at("b0r0h0", 4)
    assert not at("b0r0h0", 5)
    assert not at("gone", 1)


def test_amounts_beyond_any_machine_do_no_harm() -> None:
    sites = cluster(node("a/a1/h1", 10**30))

    assert hosts(sites, pods(1, 10**40, required="rack")) == (
        'topology "racks" doesn\'t allow to fit any of 1 pod(s). '
        'Total nodes: 1; excluded: resource "cpu": 1'
    )
    assert hosts(sites, pods(100, 10**9, required="rack")) == {"h1": 100}

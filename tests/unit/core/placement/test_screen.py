"""Which nodes a pod may use, and what the message says about the others."""

from app.core.placement.gang import BRIEFLY
from app.core.selectors import NodeAffinity, Requirement, Taint, Toleration
from app.core.topology import HOSTNAME
from tests.unit.core.placement.cluster import cluster, hosts, node, pods, where

SPOT = Taint(key="spot", value="true", effect="NoSchedule")
SOFT = Taint(key="old", effect="PreferNoSchedule")


def _affinity(*terms: tuple[Requirement, ...]) -> NodeAffinity:
    return NodeAffinity(terms=terms)


def test_taints_keep_out_who_does_not_tolerate_them() -> None:
    sites = cluster(node("a/a1/h1", taints=(SPOT,)), node("a/a1/h2", taints=(SOFT,)))
    tolerant = (Toleration(key="spot", operator="Exists"),)

    assert hosts(sites, pods(1, required="rack")) == {"h2": 1}
    assert hosts(sites, pods(8, required="rack", tolerations=tolerant)) == {"h1": 4, "h2": 4}
    assert hosts(sites, pods(8, required="rack")) == (
        'topology "racks" allows to fit only 4 out of 8 pod(s). '
        'Total nodes: 2; excluded: taint "spot=true:NoSchedule": 1'
    )


def test_tolerations_of_the_flavor_count() -> None:
    tolerant = (Toleration(key="spot", operator="Exists"),)
    sites = cluster(node("a/a1/h1", taints=(SPOT,)), tolerations=tolerant)

    assert hosts(sites, pods(1, required="rack")) == {"h1": 1}


def test_selectors_and_affinity_choose_nodes() -> None:
    sites = cluster(
        node("a/a1/h1", labels={"disk": "ssd", "cores": "8"}),
        node("a/a1/h2", labels={"disk": "hdd", "cores": "16"}),
        node("a/a1/h3"),
    )
    many = Requirement(key="cores", operator="Gt", values=("10",))
    none = Requirement(key="disk", operator="DoesNotExist")

    assert hosts(sites, pods(4, node_selector={"disk": "ssd"})) == {"h1": 4}
    assert hosts(sites, pods(4, affinity=_affinity((many,)))) == {"h2": 4}
    assert hosts(sites, pods(8, affinity=_affinity((many,), (none,)))) == {"h2": 4, "h3": 4}
    assert hosts(sites, pods(5, node_selector={"disk": "ssd"}, affinity=_affinity((many,)))) == (
        'topology "racks" doesn\'t allow to fit any of 5 pod(s). '
        "Total nodes: 3; excluded: affinity: 1, nodeSelector: 2"
    )


def test_a_term_that_asks_for_nothing_accepts_nothing() -> None:
    assert "affinity: 1" in str(hosts(cluster(node("a/a1/h1")), pods(1, affinity=_affinity(()))))


def test_the_scarcest_resource_is_named() -> None:
    sites = cluster(node("a/a1/h1", 4, gpu=1), node("a/a1/h2", 4))

    assert hosts(sites, pods(3, requests={"gpu": 1}, required="rack")) == (
        'topology "racks" allows to fit only 1 out of 3 pod(s). '
        'Total nodes: 2; excluded: resource "gpu": 1'
    )


def test_no_message_is_made_where_none_is_wanted() -> None:
    assert hosts(cluster(node("a/a1/h1")), pods(9, required="rack"), terms=BRIEFLY) == ""


def test_groups_of_nodes_are_not_screened() -> None:
    sites = cluster(node("a/a1/h1", taints=(SPOT,)), levels=("block", "rack"))

    assert hosts(sites, pods(4, required="rack", node_selector={"disk": "ssd"})) == {"a/a1": 4}


def test_a_leader_may_need_another_kind_of_node() -> None:
    sites = cluster(node("a/a1/h1", labels={"role": "head"}), node("a/a1/h2"))
    leader = pods(1, name="leader", required="rack", group="g", node_selector={"role": "head"})
    workers = pods(4, name="workers", required="rack", group="g", node_selector={HOSTNAME: "h2"})

    assert where(sites, leader, workers) == {"leader": {"h1": 1}, "workers": {"h2": 4}}

"""What every placement keeps, and what changes nothing about it."""

from collections import Counter
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.model import Node
from app.core.placement.demand import asked_per_pod
from app.core.placement.gang import BRIEFLY, EMPTY, Placement, has_room, place
from app.core.placement.misfit import Misfit
from app.core.placement.sites import Sites
from app.core.placement.wanted import Wanted
from tests.property.placement.trees import LEVELS, TAINT, crowded, nodes, pod_sets

_SLOWLY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _hosts(found: Placement, name: str) -> Counter[str]:
    return Counter({values[-1]: count for values, count in found[name].domains})


def _room(sites: Sites, host: str, resource: str) -> int:
    site = sites.site("gpu")
    assert site is not None
    leaf = site.leaf((host,))
    assert leaf is not None
    return site.now.room(leaf, resource)


def _domains(sites: Sites, hosts: Counter[str], level: int) -> Counter[str]:
    """Pods by domain of a level."""
    found: Counter[str] = Counter()
    for host, count in hosts.items():
        found["/".join(sites.nodes[host].labels[one] for one in LEVELS[: level + 1])] += count
    return found


worlds = st.tuples(nodes(), st.lists(pod_sets(), max_size=4), pod_sets())


@_SLOWLY
@given(worlds)
def test_every_pod_has_a_place_and_no_host_is_overbooked(
    world: tuple[list[Node], list[list[Wanted]], list[Wanted]],
) -> None:
    made, earlier, wanted = world
    sites = crowded(made, earlier)
    found = place(sites, wanted)
    if isinstance(found, Misfit):
        return
    for one in wanted:
        assert sum(_hosts(found, one.pod_set).values()) == one.count
        assert all(TAINT not in sites.nodes[host].taints for host in _hosts(found, one.pod_set))
    places = [one.occupying(found[one.pod_set]) for one in wanted]
    assert has_room(sites, places)
    sites.occupy(places)
    assert all(
        _room(sites, host, resource) >= 0
        for one in wanted
        for host in _hosts(found, one.pod_set)
        for resource, amount in dict(one.occupying(found[one.pod_set]).asked).items()
        if amount
    )


@_SLOWLY
@given(worlds)
def test_required_levels_and_slices_are_kept(
    world: tuple[list[Node], list[list[Wanted]], list[Wanted]],
) -> None:
    made, earlier, wanted = world
    sites = crowded(made, earlier)
    found = place(sites, wanted)
    if isinstance(found, Misfit) or wanted[0].request is None:
        return
    request, together = wanted[0].request, Counter[str]()
    for one in wanted:
        together += _hosts(found, one.pod_set)
    if request.required:
        assert len(_domains(sites, together, LEVELS.index(request.required))) == 1
    for layer in request.slices:
        spread = _domains(sites, _hosts(found, "workers"), LEVELS.index(layer.topology))
        assert all(count % layer.size == 0 for count in spread.values())


@_SLOWLY
@given(nodes(), st.lists(pod_sets(), max_size=4), pod_sets(leaders=False))
def test_required_fails_only_where_no_domain_holds_it(
    made: list[Node], earlier: list[list[Wanted]], wanted: list[Wanted]
) -> None:
    """Without slices the room of a domain is the sum over its hosts."""
    (one,) = wanted
    if one.request is None or not one.request.required or one.request.slices:
        return
    sites = crowded(made, earlier)
    held: Counter[str] = Counter()
    for host, node in sites.nodes.items():
        if TAINT not in node.taints:
            fits = min(
                max(0, _room(sites, host, resource)) // amount
                for resource, amount in asked_per_pod(one.shape.requests)
            )
            held += _domains(sites, Counter({host: fits}), LEVELS.index(one.request.required))
    fits_somewhere = max(held.values(), default=0) >= one.count

    assert isinstance(place(sites, wanted, BRIEFLY), Misfit) is not fits_somewhere


@_SLOWLY
@given(worlds)
def test_counts_that_caught_up_equal_counts_from_nothing(
    world: tuple[list[Node], list[list[Wanted]], list[Wanted]],
) -> None:
    made, earlier, wanted = world
    sites = crowded(made, [])
    for before in earlier:
        place(sites, wanted)  # counts what it will need again
        found = place(sites, before)
        if not isinstance(found, Misfit):
            sites.occupy([one.occupying(found[one.pod_set]) for one in before])
    kept, kept_empty = place(sites, wanted), place(sites, wanted, EMPTY)
    site = sites.site("gpu")
    assert site is not None
    site.forget()

    assert kept == place(sites, wanted)
    assert kept_empty == place(sites, wanted, EMPTY)
    assert kept == place(crowded(made, earlier), wanted)


@_SLOWLY
@given(worlds, st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_appear_means_nothing(
    world: tuple[list[Node], list[list[Wanted]], list[Wanted]], dice: Random
) -> None:
    made, earlier, wanted = world
    shuffled = list(made)
    dice.shuffle(shuffled)

    assert place(crowded(made, earlier), wanted) == place(crowded(shuffled, earlier), wanted)


@_SLOWLY
@given(
    worlds, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6), st.booleans(), st.booleans()))
)
def test_a_site_that_followed_its_nodes_equals_one_built_from_them(
    world: tuple[list[Node], list[list[Wanted]], list[Wanted]],
    edits: list[tuple[int, int, bool, bool]],
) -> None:
    """Hosts that go take nothing with them but their room; the placements stay booked."""
    made, earlier, wanted = world
    sites = crowded(made, earlier)
    for number, cpu, ready, tainted in edits:
        place(sites, wanted, BRIEFLY)
        sites.put_node(_edited(made[number % len(made)], cpu, ready=ready, tainted=tainted))
    followed = place(sites, wanted)
    sites.rebuild()

    assert followed == place(sites, wanted)


@_SLOWLY
@given(worlds)
def test_a_trial_leaves_nothing_behind(
    world: tuple[list[Node], list[list[Wanted]], list[Wanted]],
) -> None:
    made, earlier, wanted = world
    sites = crowded(made, earlier[:1])
    before, version = place(sites, wanted), sites.version
    with sites.trial():
        for other in earlier[1:]:
            found = place(sites, other)
            if not isinstance(found, Misfit):
                sites.occupy([one.occupying(found[one.pod_set]) for one in other])

    assert place(sites, wanted) == before
    assert sites.version == version


def _edited(node: Node, cpu: int, *, ready: bool, tainted: bool) -> Node:
    return Node(
        name=node.name,
        labels=node.labels,
        taints=(TAINT,) if tainted else (),
        allocatable={**node.allocatable, "cpu": cpu},
        ready=ready,
    )

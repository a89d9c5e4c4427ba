"""A host fails, the rest stays."""

from app.core.placement.misfit import Misfit
from app.core.placement.replacement import replace_host
from app.core.placement.sites import Sites
from app.core.placement.wanted import Wanted
from app.core.topology import HOSTNAME, TopologyAssignment
from tests.unit.core.placement.cluster import cluster, grid, pods


def _replaced(
    sites: Sites, gang: Wanted, held: dict[str, int], failed: str
) -> dict[str, int] | str:
    """`held` stays booked, as it is while a workload is admitted; the failed host is gone."""
    before = TopologyAssignment(
        levels=(HOSTNAME,), domains=tuple(((host,), count) for host, count in held.items())
    )
    sites.occupy([gang.occupying(before)])
    sites.remove_node(failed)
    found = replace_host(sites, gang, before, failed)
    if isinstance(found, Misfit):
        return found.message
    return {values[0]: count for values, count in found.domains}


def test_only_the_missing_pods_move() -> None:
    held = {"b0r0h0": 4, "b0r0h1": 2}

    assert _replaced(cluster(*grid(2, 1, 3)), pods(6), held, "b0r0h1") == {
        "b0r0h0": 4,
        "b0r0h2": 2,
    }


def test_a_host_may_take_more_of_the_same() -> None:
    held = {"b0r0h0": 2, "b0r0h1": 2}
    gang = pods(4, required="rack")

    assert _replaced(cluster(*grid(1, 1, 2)), gang, held, "b0r0h1") == {"b0r0h0": 4}


def test_a_required_domain_is_kept() -> None:
    held = {"b0r0h0": 4, "b0r0h1": 4}

    assert _replaced(cluster(*grid(1, 2, 2)), pods(8, required="rack"), held, "b0r0h1") == (
        'topology "racks" doesn\'t allow to fit any of 4 pod(s). '
        'Total nodes: 3; excluded: resource "cpu": 1, topologyDomain: 2'
    )
    assert _replaced(cluster(*grid(1, 2, 2)), pods(8, preferred="rack"), held, "b0r0h1") == {
        "b0r0h0": 4,
        "b0r1h0": 4,
    }


def test_a_broken_slice_is_mended_in_its_domain() -> None:
    held = {"b0r0h0": 4, "b0r0h1": 2, "b0r1h0": 4, "b0r1h1": 2}
    gang = pods(12, slices=[("rack", 6)])

    assert _replaced(cluster(*grid(1, 3, 3)), gang, held, "b0r1h1") == {
        "b0r0h0": 4,
        "b0r0h1": 2,
        "b0r1h0": 4,
        "b0r1h2": 2,
    }


def test_an_assignment_that_names_lost_hosts_is_not_mended() -> None:
    held = {"b0r0h0": 4, "lost": 1, "b0r0h1": 2}

    assert "stale domain lost" in str(_replaced(cluster(*grid(1, 1, 3)), pods(7), held, "b0r0h1"))

"""How long does one placement take on a large cluster, in a process of nothing else?

The cluster of the comparison with Kueue: 16 hosts a rack, 16 racks a block, 96 CPU and 8 GPUs a host, half of the hosts
loaded with a random number of GPUs. Each request is timed cold (the shape counted from nothing) and cached (counted
before, a few leaves changed since). Kueue took about 120 ms for one of these at 102,400 nodes, and 126 ms to snapshot.
"""

import random
import time
from collections.abc import Callable
from functools import partial

from app.core.model import Node, PodShape, ResourceFlavor, Topology
from app.core.placement.gang import BRIEFLY, place
from app.core.placement.ledger import Occupation
from app.core.placement.misfit import Misfit
from app.core.placement.sites import Sites
from app.core.placement.wanted import Wanted
from app.core.topology import HOSTNAME, SliceLayer, TopologyAssignment, TopologyRequest
from tests.bench.report import Report, quantile
from tests.bench.wishes import Wishes

_RACK, _BLOCK = 16, 256
_LEVELS = ("block", "rack", HOSTNAME)
_ROUNDS = 50

REQUESTS = {
    "required rack, 8 x 4": (8, 4, TopologyRequest(required="rack")),
    "required block, 64 x 8": (64, 8, TopologyRequest(required="block")),
    "preferred rack, 600 x 8": (600, 8, TopologyRequest(preferred="rack")),
    "unconstrained, 600 x 1": (600, 1, TopologyRequest(unconstrained=True)),
    "slices of 16 a rack, 64 x 4": (
        64,
        4,
        TopologyRequest(required="block", slices=(SliceLayer("rack", 16),)),
    ),
}


def single(wishes: Wishes) -> Report:
    size = wishes.sized(102_400)
    report = Report(f"one placement on {size:,} nodes")
    sites = _cluster(size)
    started = time.process_time()
    site = sites.site("gpu")
    assert site is not None
    report.add(
        "build",
        (time.process_time() - started) * 1e3,
        "ms",
        "the tree, from nodes and what they hold",
    )
    for name, (count, gpus, request) in REQUESTS.items():
        wanted = Wanted(
            pod_set="main",
            flavor="gpu",
            count=count,
            shape=PodShape(requests={"cpu": 8000, "memory": 2**34, "nvidia.com/gpu": gpus}),
            request=request,
        )
        assert not isinstance(place(sites, [wanted]), Misfit), name
        cached = _timed(partial(_touch, sites), partial(place, sites, [wanted], BRIEFLY))
        report.add(f"{name}, cached", quantile(cached, 0.95), "ms", "p95")
        cold = _timed(site.forget, partial(place, sites, [wanted], BRIEFLY))
        report.add(f"{name}, cold", quantile(cold, 0.95), "ms", "p95")
    node = sites.nodes["h000007"]
    renewed = _timed(lambda: None, partial(sites.put_node, node))
    report.add("node update", quantile(renewed, 0.95), "ms", "p95")
    return report


def _timed(before: Callable[[], object], work: Callable[[], object]) -> list[float]:
    """Milliseconds of each round, without what comes before it."""
    times = []
    for _ in range(_ROUNDS):
        before()
        started = time.process_time()
        work()
        times.append((time.process_time() - started) * 1e3)
    return times


def _touch(sites: Sites) -> None:
    """Some pods come and go on 8 hosts, as between two placements."""
    for sign in (1, -1):
        sites.occupy([_pods(f"h{host:06d}", 1) for host in range(0, 800, 100)], sign)


def _cluster(size: int) -> Sites:
    dice = random.Random(42)
    sites = Sites()
    sites.put_topology(Topology(name="racks", levels=_LEVELS))
    sites.put_flavor(ResourceFlavor(name="gpu", topology_name="racks"))
    for host in range(size):
        sites.put_node(_node(host))
    sites.occupy(
        _pods(f"h{host:06d}", gpus)
        for host in range(size)
        if dice.random() < 0.5 and (gpus := dice.randint(0, 8))
    )
    return sites


def _node(host: int) -> Node:
    name = f"h{host:06d}"
    labels = {
        "block": f"b{host // _BLOCK:04d}",
        "rack": f"r{host // _RACK:05d}",
        HOSTNAME: name,
    }
    allocatable = {"cpu": 96_000, "memory": 384 * 2**30, "nvidia.com/gpu": 8, "pods": 110}
    return Node(name=name, labels=labels, allocatable=allocatable)


def _pods(host: str, gpus: int) -> Occupation:
    there = TopologyAssignment(levels=(HOSTNAME,), domains=(((host,), gpus),))
    shape = PodShape(requests={"cpu": 8000, "memory": 2**34, "nvidia.com/gpu": 1})
    return Wanted(pod_set="main", flavor="gpu", count=gpus, shape=shape).occupying(there)

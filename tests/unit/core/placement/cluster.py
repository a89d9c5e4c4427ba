"""Small clusters in one line: nodes named by their place, pod sets, and where they went."""

from typing import Any

from app.core.model import Node, PodShape, ResourceFlavor, Topology
from app.core.placement.gang import NOW, Terms, place
from app.core.placement.misfit import Misfit
from app.core.placement.sites import Sites
from app.core.placement.wanted import Wanted
from app.core.resources import Requests
from app.core.selectors import Taint
from app.core.topology import HOSTNAME, SliceLayer, TopologyRequest

LEVELS = ("block", "rack", HOSTNAME)


def node(
    path: str,
    cpu: int = 4,
    *,
    taints: tuple[Taint, ...] = (),
    labels: dict[str, str] | None = None,
    ready: bool = True,
    **more: int,
) -> Node:
    """``node("a/r1/h1", 4)``: block a, rack r1, host h1, four cpus."""
    block, rack, host = path.split("/")
    return Node(
        name=host,
        labels={"block": block, "rack": rack, HOSTNAME: host, **(labels or {})},
        taints=taints,
        allocatable={"cpu": cpu, "pods": 110, **more},
        ready=ready,
    )


def grid(blocks: int, racks: int, hosts: int, cpu: int = 4) -> list[Node]:
    return [
        node(f"b{b}/b{b}r{r}/b{b}r{r}h{h}", cpu)
        for b in range(blocks)
        for r in range(racks)
        for h in range(hosts)
    ]


def cluster(
    *nodes: Node, levels: tuple[str, ...] = LEVELS, flavors: tuple[str, ...] = ("gpu",), **of: Any
) -> Sites:
    sites = Sites()
    sites.put_topology(Topology(name="racks", levels=levels))
    for name in flavors:
        sites.put_flavor(ResourceFlavor(name=name, topology_name="racks", **of))
    for one in nodes:
        sites.put_node(one)
    return sites


def pods(count: int, cpu: int = 1, *, name: str = "main", **of: Any) -> Wanted:
    """A pod set; ``required=``, ``preferred=``, ``slices=[(level, size)]`` or nothing, and parts of its shape."""
    request = None
    if asks := {key: of.pop(key) for key in ("required", "preferred", "slices") if key in of}:
        layers = tuple(SliceLayer(level, size) for level, size in asks.pop("slices", ()))
        request = TopologyRequest(**asks, slices=layers)
    flavor, group = of.pop("flavor", "gpu"), of.pop("group", None)
    requests: Requests = {"cpu": cpu, **of.pop("requests", {})}
    shape = PodShape(requests=requests, **of)
    return Wanted(
        pod_set=name, flavor=flavor, count=count, shape=shape, request=request, group=group
    )


Where = dict[str, dict[str, int]]


def where(sites: Sites, *wanted: Wanted, terms: Terms = NOW) -> Where | str:
    """By pod set the pods of each domain, or the message of the misfit."""
    found = place(sites, wanted, terms)
    if isinstance(found, Misfit):
        return found.message
    return {
        name: {"/".join(values): count for values, count in assignment.domains}
        for name, assignment in found.items()
    }


def hosts(sites: Sites, wanted: Wanted, terms: Terms = NOW) -> dict[str, int] | str:
    """The same for a single pod set."""
    found = where(sites, wanted, terms=terms)
    return found if isinstance(found, str) else found[wanted.pod_set]


def settle(sites: Sites, *wanted: Wanted) -> Where | str:
    """Place, and let the pods stay."""
    found = place(sites, wanted)
    if isinstance(found, Misfit):
        return found.message
    sites.occupy([one.occupying(found[one.pod_set]) for one in wanted])
    return where_of(found)


def where_of(found: Any) -> Where:
    return {
        name: {"/".join(values): count for values, count in assignment.domains}
        for name, assignment in found.items()
    }

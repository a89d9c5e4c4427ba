"""Random small clusters, what runs on them, and what is asked of them."""

from hypothesis import strategies as st

from app.core.model import Node, PodShape
from app.core.placement.sites import Sites
from app.core.placement.wanted import Wanted
from app.core.selectors import Taint
from app.core.topology import SliceLayer, TopologyRequest
from tests.unit.core.placement.cluster import LEVELS, cluster, node, settle

TAINT = Taint(key="no", effect="NoSchedule")


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    """Up to three blocks of up to three racks of up to four hosts, of several sizes, some tainted."""
    made = []
    for block in range(draw(st.integers(1, 3))):
        for rack in range(draw(st.integers(1, 3))):
            for host in range(draw(st.integers(1, 4))):
                path = f"b{block}/b{block}r{rack}/b{block}r{rack}h{host}"
                taints = (TAINT,) if draw(st.integers(0, 5)) == 0 else ()
                room = draw(st.integers(0, 5))
                made.append(node(path, draw(st.integers(0, 6)), taints=taints, pods=room + 2))
    return made


@st.composite
def requests(draw: st.DrawFn) -> tuple[TopologyRequest | None, int]:
    """A request, and of how many pods the count must be a multiple."""
    mode = draw(st.sampled_from(["required", "preferred", "unconstrained", "slices", "none"]))
    if mode == "none":
        return None, 1
    top = 0 if mode in ("slices", "unconstrained") else draw(st.integers(0, 2))
    level = LEVELS[top] if mode in ("required", "preferred") else None
    layers = draw(layered(top)) if mode != "unconstrained" else ()
    if mode == "slices" and not layers:
        return TopologyRequest(unconstrained=True), 1
    request = TopologyRequest(
        required=level if mode == "required" else None,
        preferred=level if mode == "preferred" else None,
        unconstrained=mode == "unconstrained",
        slices=layers,
    )
    return request, layers[0].size if layers else 1


@st.composite
def layered(draw: st.DrawFn, top: int) -> tuple[SliceLayer, ...]:
    levels = sorted(draw(st.sets(st.integers(top, 2), max_size=2)))
    sizes = {1: [draw(st.integers(2, 3))], 2: [4, 2]}.get(len(levels), [])
    return tuple(SliceLayer(LEVELS[at], size) for at, size in zip(levels, sizes, strict=True))


@st.composite
def pod_sets(draw: st.DrawFn, *, leaders: bool = True) -> list[Wanted]:
    """One pod set, or a group of a leader and its workers."""
    request, multiple = draw(requests())
    count = multiple * draw(st.integers(1, 6))
    shape = PodShape(requests={"cpu": draw(st.integers(0, 2))})
    has_leader = leaders and request is not None and draw(st.booleans())
    group = "g" if has_leader else None
    workers = Wanted(
        pod_set="workers", flavor="gpu", count=count, shape=shape, request=request, group=group
    )
    if not has_leader:
        return [workers]
    leader = Wanted(
        pod_set="leader",
        flavor="gpu",
        count=1,
        shape=PodShape(requests={"cpu": draw(st.integers(0, 3))}),
        request=request,
        group=group,
    )
    return [workers, leader]


def crowded(made: list[Node], earlier: list[list[Wanted]]) -> Sites:
    """The cluster after these were placed, as far as they fitted."""
    sites = cluster(*made)
    for wanted in earlier:
        settle(sites, *wanted)
    return sites

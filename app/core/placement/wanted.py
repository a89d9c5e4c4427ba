"""Places for a pod set: what a workload wants, and what its flavor's topology is then asked.

A pod set wants places for its pods on the nodes of one flavor. What the flavor tolerates its pods tolerate, too. Where
leaves are groups of nodes no pod is judged by a single node, so all pods are of one class there. Pods that do not fill
their last slice are refused, where Kueue would leave the rest without a place.
"""

from dataclasses import dataclass

from app.core.model import PodShape, ResourceFlavor
from app.core.placement.demand import (
    Demand,
    Nearness,
    Shape,
    Unplaceable,
    asked_per_pod,
    layout_of,
    search_level,
)
from app.core.placement.ledger import Occupation
from app.core.placement.screen import Criteria
from app.core.topology import HOSTNAME, TopologyAssignment, TopologyRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """`request` is None where the pods may go anywhere; pod sets of one `group` are placed together."""

    pod_set: str
    flavor: str
    count: int
    shape: PodShape
    request: TopologyRequest | None = None
    group: str | None = None

    def occupying(self, assignment: TopologyAssignment) -> Occupation:
        """Its pods, once they are placed there."""
        asked = asked_per_pod(self.shape.requests)
        return Occupation(flavor=self.flavor, assignment=assignment, asked=asked)


def demand_of(
    wanted: Wanted,
    leader: Wanted | None,
    flavor: ResourceFlavor,
    levels: tuple[str, ...],
    *,
    balanced: bool = False,
) -> Demand:
    """Raises ``Unplaceable`` for a request that these levels cannot answer."""
    nearness, level = search_level(wanted.request, levels)
    layout = layout_of(wanted.request, levels, level)
    if wanted.count % layout.size:
        raise Unplaceable(f"{wanted.count} pods are no whole slices of {layout.size}")
    shape = Shape(
        asked=asked_per_pod(wanted.shape.requests),
        leader=None if leader is None else asked_per_pod(leader.shape.requests),
        criteria=_criteria(wanted, flavor, levels),
        leader_criteria=_criteria(leader or wanted, flavor, levels),
        layout=layout,
    )
    return Demand(
        shape=shape,
        count=wanted.count,
        nearness=nearness,
        level=level,
        layers=() if wanted.request is None else wanted.request.slices,
        balanced=balanced and nearness is Nearness.PREFERRED,
    )


def _criteria(wanted: Wanted, flavor: ResourceFlavor, levels: tuple[str, ...]) -> Criteria:
    if levels[-1] != HOSTNAME:
        return Criteria()
    shape = wanted.shape
    return Criteria(
        tolerations=(*shape.tolerations, *flavor.tolerations),
        selector=tuple(sorted(shape.node_selector.items())),
        affinity=shape.affinity,
    )

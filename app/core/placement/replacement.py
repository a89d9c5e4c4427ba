"""A node failed: where do the pods go that were on it, while all others stay?

Kueue's findReplacementAssignment. The failed host leaves the assignment and the missing pods are placed anew: in the
domain of the required level, if there is one; in the domain of the slice that the loss broke, if the missing pods are
no whole slices, then in multiples of the finest layer that they still are. What is found is merged into the rest.
"""

from collections import Counter
from dataclasses import replace

from app.core.placement.demand import Demand, Unplaceable, search_level
from app.core.placement.misfit import Misfit
from app.core.placement.site import Site
from app.core.placement.sites import Sites
from app.core.placement.wanted import Wanted, demand_of
from app.core.topology import Domain, SliceLayer, TopologyAssignment, TopologyRequest


def replace_host(
    sites: Sites, wanted: Wanted, assignment: TopologyAssignment, failed: str
) -> TopologyAssignment | Misfit:
    """The assignment without the failed host, or why its pods find no other place."""
    site = sites.site(wanted.flavor)
    if site is None:
        return Misfit(f"no topology for flavor {wanted.flavor}", wanted.pod_set)
    rest = [one for one in assignment.domains if one[0][-1] != failed]
    missing = sum(count for _, count in assignment.domains) - sum(count for _, count in rest)
    stale = [values[0] for values, _ in rest if site.leaf(values) is None]
    if stale:
        told = (
            "Cannot replace the node, because the existing topologyAssignment is invalid, "
            f"as it contains the stale domain {stale[0]}"
        )
        return Misfit(told, wanted.pod_set)
    try:
        demand = _demand(sites, site, wanted, rest, missing)
    except Unplaceable as refusal:
        return Misfit(str(refusal), wanted.pod_set)
    plan = site.place(demand)
    if isinstance(plan, Misfit):
        return replace(plan, pod_set=wanted.pod_set)
    return TopologyAssignment(
        levels=assignment.levels, domains=_merged(site, [*rest, *plan.workers.domains])
    )


def _demand(sites: Sites, site: Site, wanted: Wanted, rest: list[Domain], missing: int) -> Demand:
    request, levels = wanted.request, site.tree.levels
    within = None
    if request is not None and rest:
        broken = _broken_layer(request, missing)
        if broken is not None:
            within = _slice_domain(site, rest, missing, broken)
            kept = tuple(layer for layer in request.slices if missing % layer.size == 0)
            request = replace(request, slices=kept[-1:]) if within else request
        elif request.required:
            level = search_level(request, levels)[1]
            leaf = site.tree.leaf_of[rest[0][0]]
            within = site.tree.leaves(level, site.tree.ancestor(leaf, level))
    flavor = sites.flavors[wanted.flavor]
    demand = demand_of(replace(wanted, count=missing, request=request), None, flavor, levels)
    return replace(demand, within=within)


def _broken_layer(request: TopologyRequest, missing: int) -> SliceLayer | None:
    """The finest layer of which the missing pods are no whole slices, if the loss broke any slice at all."""
    if not request.slices or missing % request.slices[0].size == 0:
        return None
    return next(layer for layer in reversed(request.slices) if missing % layer.size)


def _slice_domain(
    site: Site, rest: list[Domain], missing: int, layer: SliceLayer
) -> tuple[int, int] | None:
    """The leaves below the domain that the missing pods would make whole again."""
    level = site.tree.levels.index(layer.topology)
    held: Counter[int] = Counter()
    for values, count in rest:
        held[site.tree.ancestor(site.tree.leaf_of[values], level)] += count
    for domain in sorted(held):
        if (held[domain] + missing) % layer.size == 0:
            return site.tree.leaves(level, domain)
    return None


def _merged(site: Site, domains: list[Domain]) -> tuple[Domain, ...]:
    """In the order of the paths, each domain once."""
    counts: Counter[int] = Counter()
    for values, count in domains:
        counts[site.tree.leaf_of[values]] += count
    return tuple((site.tree.written(leaf), counts[leaf]) for leaf in sorted(counts))

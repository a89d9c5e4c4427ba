"""May pods of these shapes run on the nodes of a flavor?

Every taint that keeps pods out must be tolerated, by the pods or by the flavor itself; node selectors and required
affinity are judged on the labels that the flavor defines and on no others, since other labels differ from node to node.
A pod set that asks for a topology needs a flavor that has one with all the levels it names; one that does not ask takes
none, unless all flavors of its queue have one: then it is placed anywhere.
"""

from collections.abc import Sequence

from app.core.model import PodSet, PodShape, ResourceFlavor


def objection(name: str, flavor: ResourceFlavor | None, shapes: Sequence[PodShape]) -> str | None:
    """Why pods of these shapes may not run on a flavor's nodes, or None."""
    if flavor is None:
        return f"flavor {name} not found"
    for shape in shapes:
        accepted = (*shape.tolerations, *flavor.tolerations)
        for taint in flavor.taints:
            if taint.keeps_out and not any(one.tolerates(taint) for one in accepted):
                shown = f"{{{taint.key} {taint.value} {taint.effect} <nil>}}"
                return f"untolerated taint {shown} in flavor {name}"
        labels = flavor.node_labels
        selected = all(labels.get(k, v) == v for k, v in shape.node_selector.items())
        if not selected or not (shape.affinity is None or shape.affinity.matches(labels)):
            return f"flavor {name} doesn't match node affinity"
    return None


def topology_objection(
    flavor: ResourceFlavor | None, levels: Sequence[str], pod_set: PodSet, *, implied: bool
) -> str | None:
    """Why a flavor's topology, with these levels, does not suit a pod set; `implied`: any topology would do."""
    if flavor is None:
        return None
    request, has_topology = pod_set.topology, flavor.topology_name is not None
    if request is None or not request.is_explicit:
        message = "supports only TopologyAwareScheduling" if has_topology and not implied else None
    elif not has_topology:
        message = "does not support TopologyAwareScheduling"
    elif not levels:
        message = "information missing in TAS cache"
    else:
        is_known = all(level in levels for level in request.levels)
        message = None if is_known else "does not contain the requested level"
    return None if message is None else f'Flavor "{flavor.name}" {message}'

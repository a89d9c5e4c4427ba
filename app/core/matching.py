"""May pods of these shapes run on the nodes of a flavor?

Every taint that keeps pods out must be tolerated, by the pods or by the flavor itself; node selectors and required
affinity are judged on the labels that the flavor defines and on no others, since other labels differ from node to node.
"""

from collections.abc import Sequence

from app.core.model import PodShape, ResourceFlavor


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

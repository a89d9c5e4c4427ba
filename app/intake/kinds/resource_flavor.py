"""ResourceFlavor: one kind of hardware, told by node labels and taints.

Kueue's rules: at most eight labels, taints and tolerations; taints unique by key and effect; a topology needs at least
one node label to find its nodes by, and once chosen it stays, since the placements already made refer to it.
"""

from collections.abc import Iterator

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds.definition import Definition
from app.intake.kinds.fields import ATOMIC, ATOMIC_MAP, Model, Object, Subdomain
from app.intake.kinds.metadata import label_rules
from app.intake.kinds.place import Place
from app.intake.kinds.taints import Taint, Toleration, taint_rules, toleration_rules


class ResourceFlavorSpec(Model):
    node_labels: dict[str, str] | None = Field(
        None,
        max_length=8,
        description="Labels of the nodes of this flavor. Admitted pods get them as node selector; pods whose own"
        " selector or affinity contradicts them cannot use the flavor.",
        json_schema_extra=ATOMIC_MAP,
    )
    node_taints: list[Taint] | None = Field(
        None,
        max_length=8,
        description="Taints of the nodes of this flavor. Only pods that tolerate the NoSchedule and NoExecute ones"
        " can use it.",
        json_schema_extra=ATOMIC,
    )
    tolerations: list[Toleration] | None = Field(
        None,
        max_length=8,
        description="Tolerations that admitted pods get in addition to their own; they count when the taints above"
        " are checked.",
        json_schema_extra=ATOMIC,
    )
    topology_name: Subdomain | None = Field(
        None,
        description="The Topology by which pods are placed on the nodes of this flavor. Cannot be changed once set.",
    )


class ResourceFlavor(Object):
    """A kind of hardware that quota is given for: which nodes have it and what pods need to run there."""

    spec: ResourceFlavorSpec | None = Field(None, description="What the hardware is.")


def _rules(manifest: Place) -> Iterator[FieldError]:
    spec = manifest.at("spec")
    yield from label_rules(spec.at("nodeLabels"))
    yield from taint_rules(spec.items("nodeTaints"))
    yield from toleration_rules(spec.items("tolerations"))
    if not spec.at("topologyName").absent and not spec.at("nodeLabels").value:
        yield spec.at("nodeLabels").required("at least one node label when topologyName is set")


def _transition(new: Place, old: Place) -> Iterator[FieldError]:
    before, after = old.at("spec", "topologyName"), new.at("spec", "topologyName")
    if not before.absent and before.value != after.value:
        yield after.invalid("field is immutable once set")


RESOURCE_FLAVOR = Definition(
    model=ResourceFlavor, rules=_rules, transition=_transition, finalizer=True
)

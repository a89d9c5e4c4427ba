"""Quotas as ClusterQueues and Cohorts write them: groups of resources, each with flavors in the order they are tried.

Kueue's rules: a resource and a flavor belong to one group only; every flavor lists exactly the covered resources, in
their order; amounts are not negative; limits on borrowing and lending make sense only below a parent, and a
ClusterQueue cannot lend more than it has (a Cohort may promise more: its children's quota is lent through it).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds import names
from app.intake.kinds.fields import ATOMIC, BY_NAME, Model, Quantity, Subdomain
from app.intake.kinds.place import Place, shown

_MAX_FLAVORS = 256
_MAX_RESOURCES = 256
_MAX_PAIRS = 512


class ResourceQuota(Model):
    name: str = Field(description="The resource, as listed in coveredResources.")
    nominal_quota: Quantity = Field(
        description="How much of the resource is guaranteed. It should be what the cluster really has for it."
    )
    borrowing_limit: Quantity | None = Field(
        None,
        description="How much more than the nominal quota may be taken from the cohort while it lies idle there."
        " Without it, any amount; 0 forbids borrowing. Only meaningful in a cohort.",
    )
    lending_limit: Quantity | None = Field(
        None,
        description="How much of the nominal quota others in the cohort may use while it lies idle here. Without it,"
        " all of it; 0 keeps everything. Only meaningful in a cohort.",
    )


class FlavorQuotas(Model):
    name: Subdomain = Field(description="A ResourceFlavor.")
    resources: list[ResourceQuota] = Field(
        min_length=1,
        max_length=64,
        description="The quota of each covered resource in this flavor, in the order of coveredResources.",
        json_schema_extra=BY_NAME,
    )


class ResourceGroup(Model):
    covered_resources: list[str] = Field(
        min_length=1,
        max_length=64,
        description="The resources this group has quota for, for example cpu, memory and nvidia.com/gpu.",
        json_schema_extra=ATOMIC,
    )
    flavors: list[FlavorQuotas] = Field(
        min_length=1,
        max_length=64,
        description="The flavors that provide these resources, in the order in which they are tried.",
        json_schema_extra=BY_NAME,
    )


ResourceGroups = Annotated[list[ResourceGroup], Field(max_length=16, json_schema_extra=ATOMIC)]


@dataclass(frozen=True, slots=True)
class _Node:
    """What the rules need to know about the quota holder."""

    parent_field: str
    has_parent: bool
    lends_only_nominal: bool
    resources: set[str] = field(default_factory=set)
    flavors: set[str] = field(default_factory=set)


def quota_rules(
    spec: Place, *, parent_field: str, lends_only_nominal: bool
) -> Iterator[FieldError]:
    """`parent_field` names the field that puts this node under a cohort."""
    node = _Node(parent_field, bool(spec.text(parent_field)), lends_only_nominal)
    resources = flavors = 0
    for group in spec.items("resourceGroups"):
        covered, quotas = list(group.items("coveredResources")), list(group.items("flavors"))
        resources += len(covered)
        flavors += len(quotas)
        yield from _covered_rules(covered, node)
        yield from _flavor_rules(quotas, covered, node)
        if len(covered) * len(quotas) > _MAX_PAIRS:
            yield group.too_many(_MAX_PAIRS, len(covered) * len(quotas))
    groups = spec.at("resourceGroups")
    if flavors > _MAX_FLAVORS:
        yield groups.invalid(f"must have at most {_MAX_FLAVORS} flavors in all groups together")
    if resources > _MAX_RESOURCES:
        yield groups.invalid(
            f"must cover at most {_MAX_RESOURCES} resources in all groups together"
        )


def _covered_rules(covered: list[Place], node: _Node) -> Iterator[FieldError]:
    for resource in covered:
        if not isinstance(resource.value, str):
            continue
        if why := names.why_not_resource(resource.value):
            yield resource.invalid(why)
        if resource.value in node.resources:
            yield resource.duplicate("a resource belongs to one group only")
        node.resources.add(resource.value)


def _flavor_rules(quotas: list[Place], covered: list[Place], node: _Node) -> Iterator[FieldError]:
    here: set[str] = set()
    wanted = [resource.value for resource in covered]
    for flavor in quotas:
        name = flavor.text("name")
        if name in node.flavors:
            yield flavor.at("name").duplicate("a flavor belongs to one group only")
        here.add(name)
        resources = list(flavor.items("resources"))
        if resources and wanted and len(resources) != len(wanted):
            listed = ", ".join(map(str, wanted))
            yield flavor.at("resources").invalid(
                f"must list the covered resources, in their order: {listed}"
            )
        for index, quota in enumerate(resources):
            yield from _quota_rules(quota, wanted[index] if index < len(wanted) else None, node)
    # Repetition inside one group is a repeated list key, which the structure check reports.
    node.flavors.update(here)


def _quota_rules(quota: Place, wanted: object, node: _Node) -> Iterator[FieldError]:
    name = quota.at("name")
    legal = isinstance(wanted, str) and not names.why_not_resource(wanted)
    if legal and isinstance(name.value, str) and name.value != wanted:
        yield name.invalid(f"must be {shown(wanted)}, as at this position of coveredResources")
    for amount in ("nominalQuota", "borrowingLimit", "lendingLimit"):
        value = quota.at(amount).amount
        if value is not None and value.nanos < 0:
            yield quota.at(amount).invalid("must be greater than or equal to 0")
        elif value is not None and amount != "nominalQuota" and not node.has_parent:
            yield quota.at(amount).invalid(f"must be absent while {node.parent_field} is empty")
    nominal, lending = quota.at("nominalQuota").amount, quota.at("lendingLimit").amount
    if node.lends_only_nominal and nominal and lending and node.has_parent and lending > nominal:
        yield quota.at("lendingLimit").invalid("must be less than or equal to nominalQuota")

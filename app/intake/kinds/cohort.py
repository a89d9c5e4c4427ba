"""Cohort: a node of the tree inside which quota is borrowed and lent.

A Cohort may name a parent that does not exist (yet): such a cohort is implicit and holds no quota of its own. Kueue
lets a cycle of parents be created and then stops everything under it; we refuse it. Whether one would arise can only be
judged against the other cohorts, for which `cohort_cycle` is the pure half.
"""

from collections.abc import Iterator, Mapping

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds.definition import Definition
from app.intake.kinds.fair_sharing import FairSharing, FairSharingStatus, weight_rules
from app.intake.kinds.fields import Model, Object, Subdomain
from app.intake.kinds.place import Place
from app.intake.kinds.quotas import ResourceGroups, quota_rules


class CohortSpec(Model):
    parent_name: Subdomain | None = Field(
        None,
        description="The cohort above this one. Without it, this cohort is the root of its tree. The parent need not"
        " exist as an object; it then has no quota and no limits of its own.",
    )
    resource_groups: ResourceGroups | None = Field(
        None,
        description="Quota that belongs to the cohort itself, shared by everything below it, in addition to what its"
        " ClusterQueues have. Limits bound what the whole subtree may borrow from and lend to the parent.",
    )
    fair_sharing: FairSharing | None = Field(
        None, description="How this cohort counts among its siblings when fair sharing is on."
    )


class CohortStatus(Model):
    fair_sharing: FairSharingStatus | None = Field(
        None, description="The current share of this cohort, when fair sharing is on."
    )


class Cohort(Object):
    """A group of ClusterQueues and cohorts that lend each other what they do not use."""

    spec: CohortSpec | None = Field(None, description="Place in the tree, and quota of its own.")
    status: CohortStatus | None = Field(None, description="What is currently observed.")


def _rules(manifest: Place) -> Iterator[FieldError]:
    spec = manifest.at("spec")
    yield from quota_rules(spec, parent_field="parentName", lends_only_nominal=False)
    yield from weight_rules(spec)
    parent = spec.at("parentName")
    if not parent.absent and parent.value == manifest.at("metadata").text("name"):
        yield parent.invalid("a cohort cannot be its own parent")


COHORT = Definition(model=Cohort, rules=_rules)


def cohort_cycle(parents: Mapping[str, str], name: str, parent: str) -> tuple[str, ...] | None:
    """The cycle that would close if `name` got `parent`, from `name` back to `name`; None if there is none.

    `parents` holds the parent of every other cohort that has one. Cycles that exist already and do not pass through
    `name` are not this change's fault.
    """
    path = [name]
    above: str | None = parent
    while above:
        path.append(above)
        if above == name:
            return tuple(path)
        if above in path[:-1]:
            return None
        above = parents.get(above)
    return None

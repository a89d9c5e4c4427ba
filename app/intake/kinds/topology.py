"""Topology: the node labels that tell, from the widest to the narrowest, how near two nodes are.

Levels may be edited only while the lowest one is the host name before and after: placements then name hosts, which no
edit of the upper levels can invalidate. Otherwise they are fixed.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds.definition import Definition
from app.intake.kinds.fields import ATOMIC, LABEL_KEY, Model, Object
from app.intake.kinds.place import Place

HOSTNAME = "kubernetes.io/hostname"


class TopologyLevel(Model):
    node_label: Annotated[str, Field(min_length=1, max_length=316, pattern=LABEL_KEY)] = Field(
        description="The node label whose values are the domains of this level."
    )


class TopologySpec(Model):
    levels: list[TopologyLevel] = Field(
        min_length=1,
        max_length=16,
        description="The levels, widest first. The host name can only be the last.",
        json_schema_extra=ATOMIC,
    )


class Topology(Object):
    """How the nodes of a flavor are nested: for example blocks, racks and hosts."""

    spec: TopologySpec | None = Field(None, description="The levels.")


def _rules(manifest: Place) -> Iterator[FieldError]:
    if manifest.at("spec").absent:
        yield manifest.at("spec").required("levels must be set")
    levels = [level.at("nodeLabel") for level in manifest.items("spec", "levels")]
    seen: set[str] = set()
    for index, level in enumerate(levels):
        if not isinstance(level.value, str):
            continue
        if level.value in seen:
            yield level.duplicate("levels must be unique")
        elif level.value == HOSTNAME and index < len(levels) - 1:
            yield level.invalid("can only be the lowest level")
        seen.add(level.value)


def _transition(new: Place, old: Place) -> Iterator[FieldError]:
    before, after = old.at("spec", "levels"), new.at("spec", "levels")
    if before.absent or before.value == after.value:
        return
    if not (_ends_in_hostname(old) and _ends_in_hostname(new)):
        yield after.invalid(
            f"field is immutable unless its last level is {HOSTNAME} before and after"
        )


def _ends_in_hostname(manifest: Place) -> bool:
    levels = list(manifest.items("spec", "levels"))
    return bool(levels) and levels[-1].text("nodeLabel") == HOSTNAME


TOPOLOGY = Definition(model=Topology, rules=_rules, transition=_transition, finalizer=True)

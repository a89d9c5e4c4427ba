"""Where the pods of a pod set were placed: Kueue's compressed form and its limits.

Logically it is an ordered list of domains and their numbers of pods; ``core.topology`` reads and writes it.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from app.errors import FieldError
from app.intake.kinds.fields import ATOMIC, Count, LevelName, Model, Positive, ShortText
from app.intake.kinds.place import Place


class LevelValues(Model):
    prefix: ShortText | None = Field(None, description="What all values of this level begin with.")
    suffix: ShortText | None = Field(None, description="What all values of this level end with.")
    roots: list[ShortText] | None = Field(
        None,
        min_length=1,
        max_length=100_000,
        description="What lies between, one for each domain.",
        json_schema_extra=ATOMIC,
    )
    universal_value: ShortText | None = Field(
        None, description="The one value, where all domains share it; excludes the other fields."
    )


class TopologyAssignmentSlice(Model):
    domain_count: Positive = Field(description="How many domains this slice tells of.")
    values_per_level: list[LevelValues] = Field(
        min_length=1,
        max_length=16,
        description="The domains' values, level by level.",
        json_schema_extra=ATOMIC,
    )
    pod_counts: list[Count] | None = Field(
        None,
        min_length=1,
        max_length=100_000,
        description="How many pods each domain gets.",
        json_schema_extra=ATOMIC,
    )
    universal_pod_count: Count | None = Field(
        None, description="The one number of pods, where all domains get as many."
    )


class TopologyAssignment(Model):
    levels: Annotated[list[LevelName], Field(min_length=1, max_length=16)] = Field(
        description="The node labels that name a domain, widest first; only the host name where it is the lowest.",
        json_schema_extra=ATOMIC,
    )
    slices: list[TopologyAssignmentSlice] = Field(
        max_length=1000, description="The domains and their pods.", json_schema_extra=ATOMIC
    )


def topology_assignment_rules(assignment: Place) -> Iterator[FieldError]:
    levels = len(list(assignment.items("levels")))
    for piece in assignment.items("slices"):
        values = piece.at("valuesPerLevel")
        if isinstance(values.value, list) and len(values.value) != levels:
            yield values.invalid(f"must have one entry for each of the {levels} levels")
        yield from _slice_rules(piece)


def _slice_rules(piece: Place) -> Iterator[FieldError]:
    domains, counts = piece.number("domainCount"), piece.at("podCounts")
    if counts.absent == piece.at("universalPodCount").absent:
        yield piece.invalid("exactly one of podCounts and universalPodCount must be set")
    if isinstance(counts.value, list) and len(counts.value) != domains:
        yield counts.invalid("must have as many entries as domainCount says")
    for level in piece.items("valuesPerLevel"):
        roots, universal = level.at("roots"), level.at("universalValue")
        if roots.absent == universal.absent:
            yield level.invalid("exactly one of roots and universalValue must be set")
        elif not universal.absent and (level.text("prefix") or level.text("suffix")):
            yield level.invalid("universalValue excludes prefix and suffix")
        if isinstance(roots.value, list) and len(roots.value) != domains:
            yield roots.invalid("must have as many entries as domainCount says")

"""Where the pods of a pod set were placed: Kueue's compressed form, its limits, and the way to and from a plain list.

Slices exist because an assignment to ten thousand hosts must fit into one object: values that all domains share are
written once, and common prefixes and suffixes are taken out. Logically it is an ordered list of (values, count).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

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


def expanded(assignment: Mapping[str, Any]) -> list[tuple[tuple[str, ...], int]]:
    """The plain list: the values of each domain, widest level first, and its number of pods."""
    return [domain for piece in assignment.get("slices") or () for domain in _domains(piece)]


def _domains(piece: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], int]]:
    domains = piece["domainCount"]
    counts = piece.get("podCounts") or [piece.get("universalPodCount") or 0] * domains
    columns = [_values(level, domains) for level in piece["valuesPerLevel"]]
    for index in range(domains):
        yield tuple(column[index] for column in columns), counts[index]


def _values(level: Mapping[str, Any], domains: int) -> Sequence[str]:
    if (universal := level.get("universalValue")) is not None:
        return [universal] * domains
    prefix, suffix = level.get("prefix") or "", level.get("suffix") or ""
    return [f"{prefix}{root}{suffix}" for root in level["roots"]]


def compressed(
    levels: Sequence[str], domains: Sequence[tuple[Sequence[str], int]]
) -> dict[str, Any]:
    """The wire form of a plain list, in one slice, with everything shared written once."""
    if not domains:
        return {"levels": list(levels), "slices": []}
    counts = [count for _, count in domains]
    columns = zip(*(values for values, _ in domains), strict=True)
    piece: dict[str, Any] = {
        "domainCount": len(domains),
        "valuesPerLevel": [_level(column) for column in columns],
    }
    if len(set(counts)) == 1:
        piece["universalPodCount"] = counts[0]
    else:
        piece["podCounts"] = counts
    return {"levels": list(levels), "slices": [piece]}


def _level(values: Sequence[str]) -> dict[str, Any]:
    lowest, highest = min(values), max(values)
    if lowest == highest:
        return {"universalValue": lowest}
    prefix = lowest[: _shared(lowest, highest)]
    rests = [value[len(prefix) :] for value in values]
    backwards = [rest[::-1] for rest in rests]
    suffix = min(backwards)[: _shared(min(backwards), max(backwards))][::-1]
    out: dict[str, Any] = {"prefix": prefix} if prefix else {}
    if suffix:
        out["suffix"] = suffix
    out["roots"] = [rest[: len(rest) - len(suffix)] for rest in rests]
    return out


def _shared(left: str, right: str) -> int:
    """How many characters two texts have in common from the left."""
    pairs = zip(left, right, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))

"""What may a pod set ask of a topology, and how is the answer written down?

A *request* names levels of a topology: all pods in one domain of a level (required), as near to each other as possible
(preferred), or anywhere (unconstrained); and besides, that so many pods at a time (a slice) share a domain of a finer
level, in up to three layers. An *assignment* is the ordered list of domains and their numbers of pods. Where the lowest
level is the host name, a domain is named by its host alone.

The wire form of an assignment is Kueue's compressed one (v1beta2): a list of ten thousand hosts must fit into one
object, so values that all domains share are written once, and common prefixes and suffixes are taken out. *Finding* an
assignment is the business of ``placement``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HOSTNAME = "kubernetes.io/hostname"

#: The values of a domain, widest level first, and its number of pods.
Domain = tuple[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class SliceLayer:
    """Every `size` pods share one domain of the level `topology`."""

    topology: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRequest:
    """At most one of the first three is set; `slices` are ordered from the widest level to the narrowest."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool = False
    slices: tuple[SliceLayer, ...] = ()

    @property
    def is_explicit(self) -> bool:
        """Does it ask for anything at all? One that only names a label for ranks does not."""
        return bool(self.required or self.preferred or self.unconstrained or self.slices)

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels it names."""
        named = (self.required, self.preferred, *(layer.topology for layer in self.slices))
        return tuple(level for level in named if level is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyAssignment:
    levels: tuple[str, ...]
    domains: tuple[Domain, ...] = ()


def read_request(request: Mapping[str, Any]) -> TopologyRequest | None:
    """The ``topologyRequest`` of a pod set; None for an empty one."""
    if not request:
        return None
    return TopologyRequest(
        required=request.get("required"),
        preferred=request.get("preferred"),
        unconstrained=bool(request.get("unconstrained")),
        slices=tuple(_layers(request)),
    )


def _layers(request: Mapping[str, Any]) -> Iterator[SliceLayer]:
    for layer in request.get("podsetSliceRequiredTopologyConstraints") or ():
        yield SliceLayer(layer["topology"], int(layer["size"]))
    if outer := request.get("podSetSliceRequiredTopology"):
        yield SliceLayer(outer, int(request.get("podSetSliceSize") or 0))


def read_assignment(assignment: Mapping[str, Any]) -> TopologyAssignment:
    return TopologyAssignment(
        levels=tuple(assignment.get("levels") or ()), domains=tuple(expanded(assignment))
    )


def write_assignment(assignment: TopologyAssignment) -> dict[str, Any]:
    return compressed(assignment.levels, assignment.domains)


def expanded(assignment: Mapping[str, Any]) -> list[Domain]:
    """The plain list: the values of each domain, widest level first, and its number of pods."""
    return [domain for piece in assignment.get("slices") or () for domain in _domains(piece)]


def _domains(piece: Mapping[str, Any]) -> Iterator[Domain]:
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

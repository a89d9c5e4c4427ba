"""The placements that Kueue itself decided: finding them, and asking the same of a site."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.core.model import Node
from app.core.placement.demand import (
    Demand,
    Nearness,
    Shape,
    asked_per_pod,
    layout_of,
    search_level,
)
from app.core.placement.misfit import Misfit
from app.core.placement.site import Plan, Site
from app.core.topology import HOSTNAME, SliceLayer, TopologyRequest

_NAMED = os.environ.get("SLUICE_TAS_GOLDEN")
GOLDEN = Path(
    _NAMED
    or Path(__file__).resolve().parents[4].parent
    / "shared"
    / "traces"
    / "kueue"
    / "tas_golden.jsonl"
)

Case = dict[str, Any]
_MANY = 10**6


def cases() -> Iterator[Case]:
    with GOLDEN.open() as lines:
        yield from (json.loads(line) for line in lines)


def levels_of(case: Case) -> tuple[str, ...]:
    return (*(f"level-{i}" for i in range(len(case["parents"]) - 1)), HOSTNAME)


def site_of(case: Case) -> Site:
    """One node for each leaf; names sort like numbers."""
    levels = levels_of(case)
    nodes = []
    for leaf, free in enumerate(case["free"]):
        labels, domain = {}, leaf
        for level in range(len(levels) - 1, -1, -1):
            labels[levels[level]] = f"{domain:06d}"
            domain = case["parents"][level][domain]
        node = Node(name=f"{leaf:06d}", labels=labels)
        nodes.append((node, {"unit": free, "pods": _MANY}))
    return Site.build("flavor", "topology", levels, nodes)


def demand_of(case: Case) -> Demand:
    levels = levels_of(case)
    mode, slices = case["mode"], case["slices"] or ()
    request = TopologyRequest(
        required=levels[case["req_level"]] if mode == "required" else None,
        preferred=levels[case["req_level"]] if mode == "preferred" else None,
        unconstrained=mode == "unconstrained",
        slices=tuple(SliceLayer(levels[level], size) for level, size in slices),
    )
    nearness, level = search_level(request, levels)
    assert level == case["req_level"]
    leader = asked_per_pod({"unit": case["leader_units"]}) if case["leader_units"] else None
    return Demand(
        shape=Shape(
            asked=asked_per_pod({"unit": 1}),
            leader=leader,
            layout=layout_of(request, levels, level),
        ),
        count=case["count"],
        nearness=nearness,
        level=level,
        layers=request.slices,
        balanced=case["balanced"] and nearness is Nearness.PREFERRED,
    )


def answer(found: Plan | Misfit) -> tuple[list[list[int]] | None, int]:
    """Workers as ``[[host, pods], ...]`` and the leader's host, as the file writes them."""
    if isinstance(found, Misfit):
        return None, -1
    workers = [[int(values[-1]), pods] for values, pods in found.workers.domains]
    leader = -1 if found.leader is None else int(found.leader.domains[0][0][-1])
    return workers, leader

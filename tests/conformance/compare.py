"""What a scenario expects after a cycle, compared with what the world shows. Quantities compare by value."""

from collections.abc import Iterator
from typing import Any

from app.core.metadata import condition, status_of
from app.core.quantity import UNLIMITED, parse
from app.core.resources import FlavorResource
from app.core.topology import expanded
from tests.conformance.world import World, holds_quota


def differences(world: World, expected: dict[str, Any]) -> Iterator[str]:
    """Name every aspect that differs, as ``aspect: expected ..., found ...``."""
    for aspect, wanted, found in _aspects(world, expected):
        if wanted != found:
            yield f"{aspect}: expected {_told(wanted, found)}"


def reasons(world: World, expected: dict[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """Workload, expected reason and the reason shown."""
    for key, wanted in sorted(expected.get("reasons", {}).items()):
        manifest = world.manifests.get(("Workload", key), {})
        shown = condition(status_of(manifest), "QuotaReserved") or {}
        yield key, wanted, shown.get("reason")


def _aspects(world: World, expected: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    holding = [m for m in world.workloads() if holds_quota(m)]
    yield (
        "admitted",
        {key: _admission(one) for key, one in expected["admitted"].items()},
        {_key(m): _admission(_shown(m["status"]["admission"])) for m in holding},
    )
    yield "newlyAdmitted", expected["newlyAdmitted"], world.record.newly_admitted
    yield "preempted", expected["preempted"], world.record.preempted
    yield "evicted", expected.get("evicted", []), _sorted(world.record.evicted)
    stopping = [_key(m) for m in holding if world.is_stopping(m)]
    yield "evicting", expected.get("evicting", []), sorted(stopping) if world.is_delayed else []
    yield "pending", expected["pending"], _by_queue(world, world.image.pending)
    yield "inadmissible", expected["inadmissible"], _by_queue(world, world.image.parked)
    yield "usage", _usage_values(expected["usage"]), _usage(world, expected["usage"])


def _key(manifest: dict[str, Any]) -> str:
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}"


def _sorted(evictions: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(evictions, key=lambda one: one["workload"])


def _shown(admission: dict[str, Any]) -> dict[str, Any]:
    return {
        "clusterQueue": admission["clusterQueue"],
        "podSets": admission["podSetAssignments"],
    }


def _admission(one: dict[str, Any]) -> object:
    return (
        one["clusterQueue"],
        [
            (
                pod_set["name"],
                pod_set["count"],
                dict(pod_set.get("flavors") or {}),
                {r: value(q) for r, q in (pod_set.get("resourceUsage") or {}).items()},
                _topology(pod_set.get("topologyAssignment")),
            )
            for pod_set in one["podSets"]
        ],
    )


def _topology(assignment: dict[str, Any] | None) -> object:
    """Levels and domains, from the plain form of the vectors or from the compressed one of a status."""
    if assignment is None:
        return None
    if "domains" in assignment:
        domains = [(tuple(one["values"]), one["count"]) for one in assignment["domains"]]
        return assignment["levels"], domains
    return assignment["levels"], expanded(assignment)


def _by_queue(world: World, list_of: Any) -> dict[str, list[str]]:
    shown = {name: [one.key for one in list_of(name)] for name in world.image.cluster_queues}
    return {name: keys for name, keys in shown.items() if keys}


def _usage_values(usage: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    return {
        (queue, flavor, resource): value(text)
        for queue, flavors in usage.items()
        for flavor, resources in flavors.items()
        for resource, text in resources.items()
    }


def _usage(world: World, expected: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    """Usage of the queues that are served: all pairs of their quota, and any pair in use."""
    found: dict[tuple[str, str, str], int] = {}
    for name, queue in world.image.cluster_queues.items():
        if world.image.why_inactive(name) is not None:
            continue
        node = world.image.tree.queue(name)
        assert node is not None
        for fr in {**queue.quotas, **node.usage}:
            if fr in queue.quotas or node.used(fr):
                found[(name, fr.flavor, fr.resource)] = _exact(fr, node.used(fr))
    return found


def _exact(fr: FlavorResource, amount: int) -> int:
    """In billionths, like `value`."""
    if amount >= UNLIMITED:
        return UNLIMITED
    return amount * (10**6 if fr.resource == "cpu" else 10**9)


def value(text: Any) -> int:
    """A quantity in billionths; the vectors' mark for saturated amounts is the int64 maximum."""
    if text == "<unlimited>":
        return UNLIMITED
    nanos = parse(text).nanos
    return UNLIMITED if nanos >= UNLIMITED * 10**9 else nanos


def _told(wanted: object, found: object) -> str:
    if isinstance(wanted, dict) and isinstance(found, dict):
        keys = [k for k in sorted({*wanted, *found}, key=str) if wanted.get(k) != found.get(k)]
        return "; ".join(f"{k}={wanted.get(k)}, found {found.get(k)}" for k in keys[:4])
    return f"{wanted}, found {found}"

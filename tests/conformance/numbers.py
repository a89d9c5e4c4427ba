"""The family ``quota-math``: what a tree answers, without a single step."""

import math
from collections.abc import Iterator
from typing import Any

from app.core.fairness import Share, share
from app.core.image import Image
from app.core.manifests import parse
from app.core.node import Node, queues_below, rising
from app.core.quantity import UNLIMITED
from app.core.resources import FlavorResource, amount, written
from tests.conformance.compare import value


def differences(scenario: dict[str, Any]) -> Iterator[str]:
    image = Image.load([parse(manifest) for manifest in scenario["objects"]])
    for name, flavors in scenario["usage"].items():
        usage = {
            FlavorResource(flavor, resource): _read(resource, text)
            for flavor, resources in flavors.items()
            for resource, text in resources.items()
        }
        image.tree.charge(name, usage)
    expected = scenario["expect"]
    for name, wanted in expected["clusterQueues"].items():
        yield from _node(f"queue {name}", image.tree.queue(name), wanted)
    for name, wanted in expected["cohorts"].items():
        yield from _node(f"cohort {name}", image.tree.cohort(name), wanted)
    for place, (query, wanted) in enumerate(
        zip(scenario["queries"], expected["queries"], strict=True)
    ):
        yield from _query(f"query {place}", image, query, wanted)
    for name, groups in expected.get("shareOrder", {}).items():
        found = _share_order(image.tree.cohort(name))
        if found != groups:
            yield f"shareOrder of {name}: expected {groups}, found {found}"


def _read(resource: str, text: str) -> int:
    return UNLIMITED if text == "<unlimited>" else amount(resource, text)


def _node(where: str, node: Node | None, wanted: dict[str, Any]) -> Iterator[str]:
    if node is None:
        yield f"{where}: missing"
        return
    for flavor, resources in wanted["flavors"].items():
        for resource, numbers in resources.items():
            fr = FlavorResource(flavor, resource)
            found = _numbers(node, fr)
            for key, text in numbers.items():
                if not _same(resource, text, found[key]):
                    yield f"{where} {flavor}/{resource} {key}: expected {text}, found {found[key]}"
    yield from _share(f"{where} share", share(node), wanted["share"])


def _numbers(node: Node, fr: FlavorResource) -> dict[str, Any]:
    return {
        "usage": node.used(fr),
        "available": node.available(fr),
        "rawAvailable": node.raw_available(fr),
        "potentialAvailable": node.potential(fr),
        "localAvailable": node.local_available(fr),
        "subtreeQuota": node.subtree.get(fr, 0),
        "borrowing": node.exceeds_with(fr),
    }


def _same(resource: str, text: Any, found: Any) -> bool:
    if isinstance(text, bool):
        return text is found
    if found >= UNLIMITED or value(text) == UNLIMITED:
        return bool(found >= UNLIMITED) == (value(text) == UNLIMITED)
    return value(text) == value(written(resource, found))


def _share(where: str, found: Share, wanted: dict[str, Any]) -> Iterator[str]:
    weighted = "Infinity" if found.is_infinite else float(found.weighted)
    rounded = "MaxInt64" if found.is_infinite else found.rounded
    shown = {
        "borrowing": found.borrowing,
        "dominantResource": found.resource,
        "roundedWeightedShare": rounded,
        "unweightedRatio": float(found.ratio),
        "weightedShare": weighted,
    }
    for key, expected in wanted.items():
        if not _is_close(expected, shown[key]):
            yield f"{where} {key}: expected {expected}, found {shown[key]}"


def _is_close(one: Any, other: Any) -> bool:
    """Shares come from floats in Kueue; everything else must be equal."""
    if isinstance(one, float) or isinstance(other, float):
        return not isinstance(one, str) and not isinstance(other, str) and _near(one, other)
    return bool(one == other)


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9)


def _query(
    where: str, image: Image, query: dict[str, Any], wanted: dict[str, Any]
) -> Iterator[str]:
    node = image.tree.queue(query["clusterQueue"])
    assert node is not None
    fr = FlavorResource(query["flavor"], query["resource"])
    quantity = _read(fr.resource, query["quantity"])
    height, may_reclaim = node.borrow_height(fr, quantity)
    found = {
        "fits": quantity <= node.available(fr),
        "borrowing": node.exceeds_with(fr, quantity),
        "height": height,
        "mayReclaimInHierarchy": may_reclaim,
    }
    for key, answer in found.items():
        if wanted[key] != answer:
            yield f"{where} {key}: expected {wanted[key]}, found {answer}"
    shares = [share(at, usage) for at, usage in rising(node, {fr: quantity})]
    yield from _share(f"{where} shareWith", shares[0], wanted["shareWith"])
    for found_share, ancestor in zip(shares[1:], wanted.get("ancestorSharesWith", []), strict=True):
        yield from _share(f"{where} at {ancestor['cohort']}", found_share, ancestor["share"])


def _share_order(cohort: Node | None) -> list[list[str]]:
    groups: list[tuple[Share, list[str]]] = []
    assert cohort is not None
    ranked = sorted(
        (share(child), _label(child)) for child in cohort.children if any(queues_below(child))
    )
    for its, label in ranked:
        if groups and groups[-1][0] == its:
            groups[-1][1].append(label)
        else:
            groups.append((its, [label]))
    return [sorted(labels) for _, labels in groups]


def _label(node: Node) -> str:
    return f"{'clusterqueue' if node.is_queue else 'cohort'}/{node.name}"

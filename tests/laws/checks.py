"""The laws themselves: each looks at a world, before and after, and says what it found wrong.

Facts are taken from manifests and from the slow `Books`, never from the parts under test. Only what a law is about is
asked of the core: what its tree says, what it decided, whom it nominates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.core.cycle import schedule
from app.core.decisions import Admit, CycleResult, Preempt
from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.metadata import condition, is_true, moment, spec_of, status_of
from app.core.node import Node
from app.core.resources import FlavorResource, amount
from tests.conformance.world import World
from tests.laws.books import Books, Place, holds, queue_at
from tests.property.test_cycle_laws import state
from tests.property.test_image_laws import shown


@dataclass(frozen=True, kw_only=True)
class Before:
    """The world just before a cycle decides."""

    trace: object
    manifests: tuple[Manifest, ...]


def after_a_step(world: World) -> None:
    the_books_agree(world)
    the_image_is_current(world)


def before_a_cycle(world: World) -> Before:
    return Before(trace=state(world.image), manifests=tuple(world.manifests.values()))


def after_deciding(world: World, before: Before, result: CycleResult) -> None:
    deciding_left_no_trace(world, before, result)
    admissions_are_open(world, result)
    admissions_are_whole(world, result)
    admissions_fit(world, result)
    strict_order_holds(world, result)
    preemptors_wait(result)


def the_books_agree(world: World) -> None:
    """Laws 1 and 3, I2: the tree says of every node what the formulae say."""
    books = Books(world.manifests.values())
    frs = sorted(books.frs())
    for name, queue in world.image.tree.queues().items():
        for place, node in zip(books.path(queue_at(name)), (queue, *queue.path()), strict=True):
            assert _told(node, frs) == _worked_out(books, place, frs), f"{place} of {name}"


def _told(node: Node, frs: list[FlavorResource]) -> object:
    numbers = [
        (
            fr,
            node.used(fr),
            node.subtree.get(fr, 0),
            node.guaranteed.get(fr, 0),
            node.raw_available(fr),
            node.potential(fr),
        )
        for fr in frs
    ]
    return node.height, node.cyclic, numbers


def _worked_out(books: Books, place: Place, frs: list[FlavorResource]) -> object:
    numbers = [
        (
            fr,
            books.usage(place, fr),
            books.subtree(place, fr),
            books.guaranteed(place, fr),
            books.available(place, fr),
            books.potential(place, fr),
        )
        for fr in frs
    ]
    return books.height(place), books.is_cyclic(place), numbers


def the_image_is_current(world: World) -> None:
    """Law 13: nothing but the manifests decides what the image knows."""
    nouns = [parse(manifest) for manifest in world.manifests.values()]
    full = Image.load(nouns, world.policy)
    assert shown(world.image) == shown(full)


def deciding_left_no_trace(world: World, before: Before, result: CycleResult) -> None:
    """Laws 7 and 10: what was tried on the way is gone, and a second look sees the same."""
    assert state(world.image) == before.trace
    world.image.nominations.clear()  # what is remembered must be what would be found
    assert schedule(world.image, world.policy, world.now) == result
    assert state(world.image) == before.trace


def admissions_are_open(world: World, result: CycleResult) -> None:
    """Law 4, I11: nobody gets in through a door that is shut."""
    for admit in result.admissions:
        workload = _workload(world, admit)
        assert may_queue(world, workload, now=world.now), f"{admit.name} may not queue"
        assert _door(world, workload) == admit.cluster_queue
        queue = world.manifests["ClusterQueue", admit.cluster_queue]
        assert is_served(world, queue), f"{admit.cluster_queue} is not served"


def may_queue(world: World, workload: Manifest, *, now: datetime) -> bool:
    """Is there nothing about the workload or its LocalQueue that keeps it out?"""
    status, local = status_of(workload), _local_queue(world, workload)
    requeue_at = (status.get("requeueState") or {}).get("requeueAt")
    return (
        spec_of(workload).get("active", True)
        and not is_true(status, "Finished")
        and not holds(workload)
        and local is not None
        and spec_of(local).get("stopPolicy", "None") == "None"
        and "deletionTimestamp" not in local["metadata"]
        and (condition(status, "Requeued") or {}).get("status") != "False"
        and (requeue_at is None or moment(requeue_at) <= now)
    )


def is_served(world: World, queue: Manifest) -> bool:
    flavors = {fr.flavor for fr in _quotas(queue)}
    return (
        spec_of(queue).get("stopPolicy", "None") == "None"
        and "deletionTimestamp" not in queue["metadata"]
        and all(("ResourceFlavor", name) in world.manifests for name in flavors)
        and not Books(world.manifests.values()).is_cyclic(queue_at(queue["metadata"]["name"]))
    )


def admissions_are_whole(world: World, result: CycleResult) -> None:
    """Law 5: all pod sets, all of their pods (or what partial admission allows), all of their requests."""
    for admit in result.admissions:
        workload = _workload(world, admit)
        covered = _quotas(world.manifests["ClusterQueue", admit.cluster_queue])
        wanted = list(_pod_sets(workload))
        assert [one.name for one in admit.admission.pod_sets] == [name for name, *_ in wanted]
        counts_pods = any(fr.resource == "pods" for fr in covered)
        for one, (_, least, most, asked) in zip(admit.admission.pod_sets, wanted, strict=True):
            assert least <= one.count <= most
            each = {**asked, "pods": 1} if counts_pods else asked
            assert dict(one.usage) == {r: value * one.count for r, value in each.items()}
            assert all(FlavorResource(one.flavors[r], r) in covered for r in each)


def _pod_sets(workload: Manifest) -> Iterator[tuple[str, int, int, dict[str, int]]]:
    """Name, least and most pods, and what each pod asks for."""
    done = {one["name"]: one["count"] for one in status_of(workload).get("reclaimablePods") or ()}
    for one in spec_of(workload)["podSets"]:
        most = max(0, one["count"] - done.get(one["name"], 0))
        yield one["name"], min(one.get("minCount") or most, most), most, asked_by(one)


def asked_by(pod_set: Manifest) -> dict[str, int]:
    """What one pod asks for; these worlds know only plain containers."""
    asked: dict[str, int] = {}
    for container in pod_set["template"]["spec"]["containers"]:
        for resource, text in container["resources"]["requests"].items():
            asked[resource] = asked.get(resource, 0) + amount(resource, text)
    return asked


def admissions_fit(world: World, result: CycleResult) -> None:
    """Law 2, I1, I14: one after the other, each leaves its queue and all above it lawful.

    Without the promise never to overbook, room that victims have yet to leave counts as free.
    """
    gone = {one.uid for one in result.preemptions}
    if not world.policy.never_overbook:
        gone |= {m["metadata"]["uid"] for m in world.workloads() if world.is_stopping(m)}
    books = Books(world.manifests.values(), () if world.policy.never_overbook else gone)
    for admit in result.admissions:
        usage = usage_of(admit)
        assert books.fits(admit.cluster_queue, usage), f"{admit.name} does not fit"
        books.charge(admit.cluster_queue, usage)


def usage_of(admit: Admit) -> dict[FlavorResource, int]:
    usage: dict[FlavorResource, int] = {}
    for one in admit.admission.pod_sets:
        for resource, value in one.usage.items():
            fr = FlavorResource(one.flavors[resource], resource)
            usage[fr] = usage.get(fr, 0) + value
    return {fr: value for fr, value in usage.items() if value}


def strict_order_holds(world: World, result: CycleResult) -> None:
    """Law 9, I15: in a strict queue nobody gets ahead of somebody who may go."""
    for admit in result.admissions:
        queue = world.manifests["ClusterQueue", admit.cluster_queue]
        if spec_of(queue).get("queueingStrategy") != "StrictFIFO":
            continue
        mine = rank(_workload(world, admit))
        for other in world.workloads():
            if _door(world, other) == admit.cluster_queue and may_queue(
                world, other, now=world.now
            ):
                assert mine <= rank(other), f"{admit.name} overtook {other['metadata']['name']}"


def rank(workload: Manifest) -> tuple[int, datetime, str]:
    """Its place in a queue: the more urgent, then the older."""
    metadata = workload["metadata"]
    queued = moment(metadata["creationTimestamp"])
    evicted = condition(status_of(workload), "Evicted") or {}
    if evicted.get("status") == "True" and evicted["reason"] in (
        "PodsReadyTimeout",
        "AdmissionCheck",
    ):
        queued = moment(evicted["lastTransitionTime"])
    return -int(spec_of(workload).get("priority") or 0), queued, metadata["uid"]


def preemptors_wait(result: CycleResult) -> None:
    """I16: nobody is preempted for a workload that does not wait for just that, and nobody twice."""
    told = [one.uid for one in result.preemptions]
    assert len(told) == len(set(told))
    patient = {one.uid for one in result.pending if one.requeue == "PendingPreemption"}
    assert {one.by_uid for one in result.preemptions} <= patient


def nothing_goes_back(old: Manifest, new: Manifest) -> None:
    """I8 and I9: an ending is final, and what was counted stays counted."""
    ended = condition(status_of(old), "Finished")
    if ended is not None and ended["status"] == "True":
        assert condition(status_of(new), "Finished") == ended
    for reason, count in evictions_by_reason(old).items():
        assert evictions_by_reason(new).get(reason, 0) >= count


def evictions_by_reason(workload: Manifest) -> dict[tuple[str, str], int]:
    stats = status_of(workload).get("schedulingStats") or {}
    return {
        (one["reason"], one.get("underlyingCause", "")): one["count"]
        for one in stats.get("evictions") or ()
    }


def _workload(world: World, decision: Admit | Preempt) -> Manifest:
    return world.manifests["Workload", f"{decision.namespace}/{decision.name}"]


def _local_queue(world: World, workload: Manifest) -> Manifest | None:
    namespace = workload["metadata"].get("namespace", "default")
    return world.manifests.get(("LocalQueue", f"{namespace}/{spec_of(workload)['queueName']}"))


def _door(world: World, workload: Manifest) -> str | None:
    """The ClusterQueue it would wait for."""
    local = _local_queue(world, workload)
    return None if local is None else str(spec_of(local)["clusterQueue"])


def _quotas(queue: Manifest) -> dict[FlavorResource, Any]:
    return {
        FlavorResource(flavor["name"], item["name"]): item
        for group in spec_of(queue).get("resourceGroups") or ()
        for flavor in group["flavors"]
        for item in flavor["resources"]
    }

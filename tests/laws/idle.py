"""I15 for best effort: once a world is quiet, nobody waits beside room that would do.

Room may be kept on purpose: for a preemptor whose victims have not stopped, and, in a tree with a strict queue, for a
head that blocks it. Worlds with either are not judged.
"""

from app.core.manifests import Manifest
from app.core.metadata import name_of, spec_of
from app.core.resources import FlavorResource
from tests.laws.books import Books, Place, queue_at
from tests.laws.checks import asked_by, is_served, may_queue
from tests.laws.stage import Stage


def nothing_idles(stage: Stage) -> int:
    """How many waiting workloads were tried against the room there is."""
    if any(stage.is_stopping(one) for one in stage.workloads()):
        return 0
    books, tried = stage.books(), 0
    strict = {_root(books, name) for name in _queues(stage) if _is_strict(stage, name)}
    for workload in stage.workloads():
        name = _door(stage, workload)
        if name is None or _root(books, name) in strict or not _may_go(stage, workload, name):
            continue
        tried += 1
        usage = _first_fit(books, stage.find("ClusterQueue", name), workload)
        assert usage is None, f"{name_of(workload)} waits beside room for {usage} in {name}"
    return tried


def _queues(stage: Stage) -> list[str]:
    return [name for kind, name in stage.manifests if kind == "ClusterQueue"]


def _is_strict(stage: Stage, name: str) -> bool:
    return bool(spec_of(stage.find("ClusterQueue", name))["queueingStrategy"] == "StrictFIFO")


def _root(books: Books, name: str) -> Place:
    return list(books.path(queue_at(name)))[-1]


def _door(stage: Stage, workload: Manifest) -> str | None:
    local = stage.manifests.get(("LocalQueue", f"default/{spec_of(workload)['queueName']}"))
    return None if local is None else str(spec_of(local)["clusterQueue"])


def _may_go(stage: Stage, workload: Manifest, name: str) -> bool:
    queue = stage.manifests.get(("ClusterQueue", name))
    is_open = queue is not None and is_served(stage, queue)
    return is_open and may_queue(stage, workload, now=stage.now)


def _first_fit(
    books: Books, queue: Manifest, workload: Manifest
) -> dict[FlavorResource, int] | None:
    """Room for a workload of one pod set in one flavor, tried flavor by flavor; None when there is none."""
    pod_sets = spec_of(workload)["podSets"]
    if len(pod_sets) != 1:
        return None
    count, asked = pod_sets[0]["count"], asked_by(pod_sets[0])
    for group in spec_of(queue)["resourceGroups"]:
        for flavor in group["flavors"]:
            usage = {FlavorResource(flavor["name"], r): v * count for r, v in asked.items() if v}
            if books.fits(queue["metadata"]["name"], usage):
                return usage
    return None

"""Which number does a workload's priority class stand for?

A class of ours (`WorkloadPriorityClass`) is looked up in the transaction; one of the cluster's is known to whoever
observes the cluster. A class that does not exist counts as 0 until it does, and no class at all is priority 0.
"""

from collections.abc import Callable

from app.core.manifests import Manifest
from app.core.metadata import spec_of
from app.store.session import WriteTx


async def with_priority(
    tx: WriteTx, manifest: Manifest, of_cluster: Callable[[str], int | None]
) -> Manifest:
    reference = spec_of(manifest).get("priorityClassRef")
    if not reference:
        return manifest
    if reference.get("kind") == "WorkloadPriorityClass":
        found = await tx.get("WorkloadPriorityClass", None, reference["name"])
        value = int(found.get("value") or 0) if found else 0
    else:
        value = of_cluster(reference["name"]) or 0
    return {**manifest, "spec": {**spec_of(manifest), "priority": value}}

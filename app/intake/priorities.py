"""Which number does a workload's priority class stand for?

A class of ours (`WorkloadPriorityClass`) is looked up in the transaction; one of the cluster's is known to whoever
observes the cluster. A class that does not exist counts as 0 until it does.
"""

from collections.abc import Callable

from app.core.manifests import Manifest
from app.store.session import WriteTx


async def priorities(
    tx: WriteTx, of_cluster: Callable[[str], int | None]
) -> Callable[[Manifest], int]:
    """A function from a `priorityClassRef` to its number, as of now."""
    ours = {
        one["metadata"]["name"]: int(one.get("value") or 0)
        for one in await tx.list("WorkloadPriorityClass")
    }

    def priority_of(reference: Manifest) -> int:
        if reference.get("kind") == "WorkloadPriorityClass":
            return ours.get(reference["name"], 0)
        return of_cluster(reference["name"]) or 0

    return priority_of

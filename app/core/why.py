"""Why is this workload pending, now, whether or not a cycle has looked at it?

A cycle explains the heads it looks at; workloads further back, or parked together with an equal, have only what was
true then. This asks the same questions for any one of them against the current image, and changes nothing.
"""

from app.core import explain, upkeep
from app.core.decisions import Explanation, PendingReason
from app.core.image import Image
from app.core.model import Workload
from app.core.nomination import Nominator, is_blocked, why_not
from app.core.policy import Policy
from app.core.queues import is_held_back


def why_pending(image: Image, policy: Policy, workload: Workload) -> Explanation | None:
    """The explanation of a workload that waits for quota; None for one that holds quota or has finished."""
    if workload.finished or workload.admission is not None:
        return None
    if not workload.active:
        return explain.simply(PendingReason.DEACTIVATED, "The workload is deactivated")
    if workload.gated:
        return explain.simply(PendingReason.ADMISSION_GATED, "An admission gate is closed")
    reason, message = upkeep.why_out(workload, image)
    if reason is not None:
        return explain.simply(reason, message)
    if is_held_back(workload):
        return explain.simply(PendingReason.PENDING_EVALUATION, "Its back-off is not over")
    return _as_if_head(image, policy, workload)


def _as_if_head(image: Image, policy: Policy, workload: Workload) -> Explanation | None:
    queue = image.queue_of(workload)
    node = image.tree.queue(queue.name) if queue is not None else None
    if queue is None or node is None:
        return None
    rejection = why_not(image, queue, workload)
    if rejection is not None:
        return rejection.explanation
    nominator = Nominator(image=image, policy=policy, queue=queue, node=node, workload=workload)
    nomination = nominator.propose()
    if not nomination.is_admissible:
        return nominator.why(nomination)
    if not nomination.targets and is_blocked(image, policy):
        return explain.waiting_for_pods()
    ahead = [one.uid for one in image.pending(queue.name)]
    place = ahead.index(workload.uid) if workload.uid in ahead else len(ahead)
    fits = "would preempt others" if nomination.targets else "fits"
    message = (
        f"It {fits} and waits for its turn behind {place} workload(s) of ClusterQueue {queue.name}"
    )
    return explain.simply(PendingReason.PENDING_EVALUATION, message)

"""What did it all come to? Sums over the ledger: waits, utilisation, who borrowed, and whether quota was ever exceeded.

Pure. The last question is answered by playing all spans in order into a fresh quota tree, the one that decisions are
made with but with nothing of the engine around it: at each admission every node of the tree must still have room.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.model import ClusterQueue, Cohort, Noun
from app.core.quota import QuotaTree
from app.core.resources import FlavorResource
from app.store.ledger import Span

GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSummary:
    name: str
    jobs: int
    wait_mean_s: float
    wait_max_s: float
    gpu_hours: float
    borrowed_gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    queues: tuple[QueueSummary, ...]
    lasted_s: float
    utilisation: float | None
    """Of all GPU quota, from the first admission to the last end; None where there is none."""
    exceeded: tuple[str, ...]
    """Admissions that took more than there was, in words; none, if all is well."""


def summarize(
    spans: Sequence[Span], queued_at: Mapping[str, datetime], nouns: Iterable[Noun], now: datetime
) -> Summary:
    """`queued_at` is when each workload (by uid) was created."""
    known = list(nouns)
    queues = [noun for noun in known if isinstance(noun, ClusterQueue)]
    begun = min((span.started_at for span in spans), default=now)
    ended = max((span.ended_at or now for span in spans), default=now)
    lasted_s = (ended - begun).total_seconds()
    capacity = sum(_nominal(noun) for noun in known if isinstance(noun, ClusterQueue | Cohort))
    used = sum(_gpu_seconds(span, now) for span in spans)
    return Summary(
        queues=tuple(_of_queue(queue.name, spans, queued_at, now) for queue in queues),
        lasted_s=lasted_s,
        utilisation=used / (capacity * lasted_s) if capacity and lasted_s else None,
        exceeded=tuple(_exceeded(spans, known)),
    )


def _of_queue(
    name: str, spans: Sequence[Span], queued_at: Mapping[str, datetime], now: datetime
) -> QueueSummary:
    mine = [span for span in spans if span.charge.cluster_queue == name]
    first: dict[str, datetime] = {}
    for span in mine:
        known = first.get(span.workload_uid, span.started_at)
        first[span.workload_uid] = min(known, span.started_at)
    waits = [
        (started - queued_at[uid]).total_seconds()
        for uid, started in first.items()
        if uid in queued_at
    ]
    borrowed = sum(
        span.charge.borrowed * _seconds(span, now) for span in mine if span.charge.resource == GPU
    )
    return QueueSummary(
        name=name,
        jobs=len(first),
        wait_mean_s=sum(waits) / len(waits) if waits else 0.0,
        wait_max_s=max(waits, default=0.0),
        gpu_hours=sum(_gpu_seconds(span, now) for span in mine) / 3600,
        borrowed_gpu_hours=borrowed / 3600,
    )


def _exceeded(spans: Sequence[Span], nouns: Iterable[Noun]) -> Iterable[str]:
    tree = QuotaTree()
    for noun in nouns:
        if isinstance(noun, Cohort):
            tree.put_cohort(noun)
        elif isinstance(noun, ClusterQueue):
            tree.put_queue(noun)
    for at, sign, span in _moves(spans):
        charge = span.charge
        node = tree.queue(charge.cluster_queue)
        if node is None:
            continue
        fr = FlavorResource(charge.flavor, charge.resource)
        tree.charge(charge.cluster_queue, {fr: charge.amount}, sign)
        if sign > 0 and node.raw_available(fr) < 0:
            yield (
                f"{span.namespace}/{span.name} took {charge.amount} {charge.resource} of {charge.flavor} in "
                f"{charge.cluster_queue} at {at.isoformat()}: {-node.raw_available(fr)} too much"
            )


def _moves(spans: Sequence[Span]) -> list[tuple[datetime, int, Span]]:
    """What was given back comes before what was taken at the same moment."""
    moves: defaultdict[tuple[datetime, int], list[Span]] = defaultdict(list)
    for span in spans:
        moves[span.started_at, 1].append(span)
        if span.ended_at is not None:
            moves[span.ended_at, -1].append(span)
    return [
        (at, sign, span)
        for (at, sign), group in sorted(moves.items(), key=lambda item: item[0])
        for span in group
    ]


def _gpu_seconds(span: Span, now: datetime) -> float:
    return span.charge.amount * _seconds(span, now) if span.charge.resource == GPU else 0.0


def _seconds(span: Span, now: datetime) -> float:
    return ((span.ended_at or now) - span.started_at).total_seconds()


def _nominal(noun: ClusterQueue | Cohort) -> int:
    return sum(quota.nominal for fr, quota in noun.quotas.items() if fr.resource == GPU)

"""Which LocalQueue of a ClusterQueue used less of late, and so is served first (KEP-4136)?

Each LocalQueue remembers what it consumed, with older use counting less: at every sample, with d the part that is left
after the time since the last one, consumed becomes consumed * d + usage * (1 - d). Usage builds up slowly, so whoever
reserves quota is charged an *entry penalty* at once: what one sampling interval of it would add. A penalty counts from
the reservation on and is folded into what was consumed by the first sample after the admission, exactly once.

Kueue keeps penalties in memory. Here they are derived: a workload's penalty counts while it holds quota and is not
admitted, or was admitted in or after the second of the last sample; the sample takes in those admitted in earlier
seconds, and writes its own second in the same row. So a restart loses none and repeats none. (What a restart cannot
know is the penalty of a reservation that was given back without an admission; Kueue keeps it, here it ends with the
reservation.)

Amounts are billionths of a cpu, a byte or a piece, and shares integers, so that comparisons are exact.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core import decay
from app.core.model import LocalQueue, Workload
from app.core.ordering import Share
from app.core.policy import AdmissionFairness
from app.core.requests import held
from app.core.resources import CPU

_BILLION = 10**9
_SECOND = timedelta(seconds=1)

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a LocalQueue is known to have consumed, and when that was reckoned."""

    consumed: Amounts
    at: datetime
    share: Share


def using(workload: Workload) -> dict[str, int]:
    """What a workload that holds quota uses, in billionths, whatever the flavor."""
    total: dict[str, int] = {}
    for fr, amount in held(workload).items():
        unit = _BILLION // 1000 if fr.resource == CPU else _BILLION
        total[fr.resource] = total.get(fr.resource, 0) + amount * unit
    return total


def penalty(workload: Workload, rules: AdmissionFairness) -> dict[str, int]:
    """What it is charged on entry."""
    taken = decay.ONE - _left(rules.sampling, rules)
    return {name: decay.decayed(amount, taken) for name, amount in using(workload).items()}


def is_open(workload: Workload, local: LocalQueue) -> bool:
    """Is its entry penalty still to be added to what the queue consumed?"""
    if workload.admission is None:
        return False
    if not workload.admitted or workload.admitted_at is None:
        return not workload.finished
    return local.consumed_at is None or workload.admitted_at >= local.consumed_at


def share(local: LocalQueue, penalties: Iterable[Amounts], rules: AdmissionFairness) -> Share:
    """What counts against it, by weight: the less, the sooner it is served."""
    return _share(local, _sum(local.consumed, *penalties), rules)


def sample(
    local: LocalQueue, workloads: Iterable[Workload], rules: AdmissionFairness, now: datetime
) -> Sample:
    """Its books brought up to the second of `now`; `workloads` are all that hold quota or held it since the last."""
    at = now.replace(microsecond=0)
    elapsed = timedelta() if local.consumed_at is None else max(timedelta(), at - local.consumed_at)
    rest = _left(elapsed, rules)
    known = list(workloads)
    running = [using(one) for one in known if one.admitted and not one.finished]
    past = {name: decay.decayed(amount, rest) for name, amount in local.consumed.items()}
    now_used = {
        name: decay.decayed(amount, decay.ONE - rest) for name, amount in _sum({}, *running).items()
    }
    consumed: Amounts = {}
    if rules.half_life:
        folded = [penalty(one, rules) for one in known if _is_folded(one, local, at)]
        consumed = {n: amount for n, amount in _sum(past, now_used, *folded).items() if amount}
    return Sample(consumed=consumed, at=at, share=_share(local, consumed, rules))


def is_due(
    local: LocalQueue, workloads: Iterable[Workload], rules: AdmissionFairness, now: datetime
) -> bool:
    """Has a sampling interval passed, or is there a penalty to take in?"""
    at = now.replace(microsecond=0)
    if local.consumed_at is None or at - local.consumed_at >= rules.sampling:
        return True
    return any(_is_folded(one, local, at) for one in workloads)


def _is_folded(workload: Workload, local: LocalQueue, at: datetime) -> bool:
    admitted_at = workload.admitted_at
    return is_open(workload, local) and admitted_at is not None and admitted_at <= at - _SECOND


def _left(elapsed: timedelta, rules: AdmissionFairness) -> int:
    millisecond = timedelta(milliseconds=1)
    return decay.left(elapsed // millisecond, rules.half_life // millisecond)


def _share(local: LocalQueue, amounts: Amounts, rules: AdmissionFairness) -> Share:
    if local.weight_nanos <= 0:
        return (1, 0)
    weighed = sum(rules.weight(name) * amount for name, amount in amounts.items())
    return (0, weighed * _BILLION // local.weight_nanos)


def _sum(*parts: Amounts) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return dict(sorted(total.items()))

"""Which of the configurable rules apply? One frozen value, resolved at start and handed to every decision.

The fields mirror Kueue's Configuration and feature gates as far as the core consults them; nothing in the core looks
at a global switch.
"""

from dataclasses import dataclass
from enum import StrEnum


class FairStrategy(StrEnum):
    """When a workload of another queue may be preempted for the sake of fair shares."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
    LESS_THAN_INITIAL_SHARE = "LessThanInitialShare"


BOTH_STRATEGIES = (
    FairStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
    FairStrategy.LESS_THAN_INITIAL_SHARE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    #: Strategies of fair sharing in the order they are tried; None: classical ordering and preemption.
    fair_sharing: tuple[FairStrategy, ...] | None = None
    partial_admission: bool = True
    #: Admit nobody into room that victims have yet to leave. Kueue does: beside a preemption that frees more than its
    #: preemptor needs, what fits may start at once, and the quota is overbooked until the victims have stopped.
    never_overbook: bool = False


DEFAULT = Policy()

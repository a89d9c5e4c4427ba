"""How good is a flavor, and is it good enough to stop looking?

A flavor is judged resource by resource; a judgement is a *standing*: the mode in which the request meets the quota, and
the height of the cohort it borrows from. The rules are those of a queue's ``flavorFungibility`` (KEP-582). Where its
API text and Kueue's code differ on `preference`, the code is followed: BorrowingOverPreemption puts the mode first.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from app.core.model import Fungibility, FungibilityPolicy, FungibilityPreference


class Mode(IntEnum):
    """How a request meets a quota, from worst to best."""

    NO_FIT = 0
    NO_CANDIDATES = 1  # preemption might help, but there is nobody to preempt
    PREEMPT = 2
    RECLAIM = 3  # all victims are in other queues
    FIT = 4

    @property
    def needs_preemption(self) -> bool:
        return Mode.NO_FIT < self < Mode.FIT


@dataclass(frozen=True, slots=True)
class Standing:
    mode: Mode
    height: int = 0  # of the cohort it borrows from; 0: it does not borrow


def is_preferred(one: Standing, other: Standing, rules: Fungibility) -> bool:
    """Is `one` strictly better? Preemption without candidates is better than nothing only."""
    hopeless = (Mode.NO_FIT, Mode.NO_CANDIDATES)
    if one.mode is not other.mode and (one.mode in hopeless or other.mode in hopeless):
        return one.mode > other.mode
    if one.mode is Mode.NO_FIT:
        return False
    if rules.preference is FungibilityPreference.BORROWING_OVER_PREEMPTION:
        return (-one.mode, one.height) < (-other.mode, other.height)
    return (one.height, -one.mode) < (other.height, -other.mode)


def worst(standings: Iterable[Standing], rules: Fungibility) -> Standing:
    """What a flavor is worth: its least preferred resource.

    With PreemptionOverBorrowing that may be one that fits by borrowing, although another needs preemption.
    """
    found = Standing(Mode.FIT)
    for standing in standings:
        if is_preferred(found, standing, rules):
            found = standing
    return found


def may_stop(standing: Standing, rules: Fungibility) -> bool:
    """Stopping short of the last flavor needs the consent of every policy it touches."""
    stop = FungibilityPolicy.MAY_STOP_SEARCH
    if standing.mode <= Mode.NO_CANDIDATES:
        return False
    if standing.mode < Mode.FIT and rules.when_can_preempt is not stop:
        return False
    return standing.height == 0 or rules.when_can_borrow is stop

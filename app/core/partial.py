"""How small may a gang start, and what is the largest size that can?

Partial admission (KEP-420): pod sets with a minimum count shrink together, in proportion to what each may give up. A
binary search over one scalar finds the largest size that works; it assumes, as Kueue does, that a smaller gang fits
wherever a larger one does.
"""

from collections.abc import Callable
from typing import TypeVar

from app.core.model import Workload
from app.core.requests import left

_Result = TypeVar("_Result")


def largest(
    workload: Workload,
    propose: Callable[[tuple[int, ...]], _Result],
    is_good: Callable[[_Result], bool],
) -> _Result | None:
    """The proposal for the largest reduced size that is good; None if the smallest is not, or none is allowed."""
    counts = tuple(left(workload, one) for one in workload.pod_sets)
    spare = tuple(
        count - one.min_count if one.min_count is not None else 0
        for one, count in zip(workload.pod_sets, counts, strict=True)
    )
    steps = sum(spare)
    if steps <= 0:
        return None
    best: _Result | None = None
    low, high = 0, steps
    while low <= high:
        middle = (low + high) // 2
        size = tuple(c - s * middle // steps for c, s in zip(counts, spare, strict=True))
        proposal = propose(size)
        if is_good(proposal):
            best, high = proposal, middle - 1
        else:
            low = middle + 1
    return best

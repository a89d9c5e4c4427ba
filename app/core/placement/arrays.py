"""The kinds of arrays this package computes with, and the number that stands for "more than there can be"."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PLENTY = 2**31 - 1


def zeros(size: int) -> Ints:
    return np.zeros(size, dtype=np.int64)


def spans(starts: Ints, lengths: Ints) -> Ints:
    """The numbers of several ranges, one range after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(starts - ends + lengths, lengths)

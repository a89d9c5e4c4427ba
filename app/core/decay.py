"""What is left of an amount after some time, when half of it is forgotten in every half-life?

In integers: the same on every machine, whatever its mathematics library. A fraction is counted in 2**64ths; powers of
two below one are composed of 1/2, 1/4, 1/8 ... of a half-life, each exact to the last place by an integer square root.
"""

from functools import lru_cache
from math import isqrt

BITS = 64
ONE = 1 << BITS


@lru_cache(maxsize=1024)
def left(elapsed_ms: int, half_life_ms: int) -> int:
    """The part that is left, in 2**64ths; nothing at all without a half-life, all of it while no time has passed."""
    if half_life_ms <= 0:
        return 0
    halvings, rest = divmod(max(0, elapsed_ms), half_life_ms)
    if halvings > BITS:
        return 0
    part = ONE
    step = ONE
    for _ in range(BITS):
        step = isqrt((step << BITS) if step != ONE else 1 << (2 * BITS - 1))
        rest *= 2
        if rest >= half_life_ms:
            rest -= half_life_ms
            part = part * step >> BITS
    return part >> halvings


def decayed(amount: int, part_left: int) -> int:
    return amount * part_left >> BITS

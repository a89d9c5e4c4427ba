"""Are calls spread and failures waited out as promised?"""

import asyncio
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.kube.pacing import Backoff, TokenBucket


async def test_a_burst_passes_and_the_rest_is_spread() -> None:
    loop = asyncio.get_running_loop()
    bucket = TokenBucket(rate=50, burst=3)
    begun = loop.time()
    at: list[float] = []
    for _ in range(6):
        await bucket.take()
        at.append(loop.time() - begun)
    assert at[2] < 0.02
    assert at[5] >= 3 / 50 - 0.005


async def test_tokens_come_back_up_to_the_burst() -> None:
    loop = asyncio.get_running_loop()
    bucket = TokenBucket(rate=100, burst=2)
    for _ in range(2):
        await bucket.take()
    await asyncio.sleep(0.1)
    begun = loop.time()
    for _ in range(2):
        await bucket.take()
    assert loop.time() - begun < 0.01
    await bucket.take()
    assert loop.time() - begun >= 0.005


@given(st.integers(), st.integers(1, 200))
def test_waits_double_up_to_a_bound_and_keep_half_of_their_span(seed: int, failures: int) -> None:
    backoff = Backoff(Random(seed), first_s=1.0, most_s=30.0)
    for number in range(failures):
        span = min(30.0, 2.0**number)
        assert span / 2 <= backoff.next_s() <= span
    assert backoff.failures == failures
    backoff.reset()
    assert backoff.next_s() <= 1.0


def test_the_servers_wish_is_the_least() -> None:
    backoff = Backoff(Random(1), first_s=0.1, most_s=30.0)
    assert backoff.next_s(12.0) == 12.0
    assert backoff.next_s(0.0) <= 0.2

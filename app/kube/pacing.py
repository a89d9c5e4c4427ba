"""When may the next call go out, and how long to wait after one that failed?

`TokenBucket` spreads the calls to one cluster over time (client-go's QPS and burst); waiters are served in order.
`Backoff` grows exponentially with full jitter, never below what the server asked for with Retry-After. Both measure
with the event loop's monotonic clock; the dice are handed in, so that tests can fix them.
"""

import asyncio
from random import Random


class TokenBucket:
    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at: float | None = None

    async def take(self) -> None:
        """Take one token, at once or after the wait that is due; a later caller waits longer."""
        now = asyncio.get_running_loop().time()
        if self._filled_at is not None:
            gained = (now - self._filled_at) * self._rate
            self._tokens = min(float(self._burst), self._tokens + gained)
        self._filled_at = now
        self._tokens -= 1
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._rate)


class Backoff:
    def __init__(self, random: Random, *, first_s: float = 0.2, most_s: float = 30.0) -> None:
        self._random = random
        self._first_s = first_s
        self._most_s = most_s
        self._failures = 0

    @property
    def failures(self) -> int:
        """In a row, since the last `reset`."""
        return self._failures

    def reset(self) -> None:
        self._failures = 0

    def next_s(self, at_least_s: float | None = None) -> float:
        """The wait before the next try: between half and all of a span that doubles with each failure in a row."""
        span = min(self._most_s, self._first_s * 2.0 ** min(self._failures, 20))
        self._failures += 1
        return max(at_least_s or 0.0, span * (0.5 + self._random.random() / 2))

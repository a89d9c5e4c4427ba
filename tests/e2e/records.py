"""What does the database itself say? Read beside the service, with plain SQL.

The ledger check is an accountant of its own: it replays all spans ever charged in the order in which they began and
ended, against limits that the test states in its own words, and knows nothing of how the service decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from tests.e2e.waiting import to_its_end

SPANS = """
select workload_uid::text as uid, attempt, cluster_queue, flavor, resource, name, amount, borrowed, started_at, ended_at
from admissions where cluster_queue = any($1) order by started_at, name
"""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """A flat cohort: what each of its queues may use of a flavor, and all of them together; thousandths of a cpu."""

    of_queue: Mapping[tuple[str, str], int]
    of_all: Mapping[str, int]

    @property
    def queues(self) -> list[str]:
        return sorted({queue for queue, _ in self.of_queue})


class Records:
    """One database, by SQL."""

    def __init__(self, url: str) -> None:
        self._url = url

    def rows(self, query: str, *arguments: Any) -> list[dict[str, Any]]:
        return to_its_end(self._rows(query, arguments))

    def value(self, query: str, *arguments: Any) -> Any:
        (row,) = self.rows(query, *arguments)
        (value,) = row.values()
        return value

    def spans(self, *queues: str) -> list[dict[str, Any]]:
        return self.rows(SPANS, list(queues))

    def attempt_is_open(self, cluster_queue: str, workload_name: str, attempt: int) -> bool:
        return any(
            span["ended_at"] is None and (span["name"], span["attempt"]) == (workload_name, attempt)
            for span in self.spans(cluster_queue)
        )

    async def _rows(self, query: str, arguments: tuple[Any, ...]) -> list[dict[str, Any]]:
        connection = await asyncpg.connect(self._url)
        try:
            return [dict(row) for row in await connection.fetch(query, *arguments)]
        finally:
            await connection.close()


def replay(spans: list[dict[str, Any]], limits: Limits) -> dict[str, int]:
    """The most that was ever used of each flavor; fails if anything was ever above its limit."""
    events = sorted(
        [(span["ended_at"], 0, -span["amount"], span) for span in spans if span["ended_at"]]
        + [(span["started_at"], 1, span["amount"], span) for span in spans],
        key=lambda event: event[:2],
    )
    used: dict[tuple[str, str], int] = {}
    open_attempt: dict[tuple[str, str], int] = {}
    most: dict[str, int] = {}
    for at, begins, amount, span in events:
        place, holder = (span["cluster_queue"], span["flavor"]), (span["uid"], span["resource"])
        used[place] = used.get(place, 0) + amount
        if begins:
            assert holder not in open_attempt, f"{span['name']} charged twice at {at}"
            open_attempt[holder] = span["attempt"]
            total = sum(amount for (_, flavor), amount in used.items() if flavor == place[1])
            most[place[1]] = max(most.get(place[1], 0), total)
            assert used[place] <= limits.of_queue[place], _told(spans, place[1], at)
            assert total <= limits.of_all[place[1]], _told(spans, place[1], at)
        else:
            del open_attempt[holder]
        assert used[place] >= 0, f"{place} uses {used[place]} at {at}"
    return most


def _told(spans: list[dict[str, Any]], flavor: str, at: datetime) -> str:
    """Who held the flavor then."""
    lines = [
        f"{span['name']} {span['amount']} from {span['started_at']:%X.%f} to {span['ended_at']}"
        for span in spans
        if span["flavor"] == flavor
        and span["started_at"] <= at
        and (span["ended_at"] is None or span["ended_at"] > at)
    ]
    return "\n".join([f"too much of {flavor} at {at:%X.%f}:", *lines])

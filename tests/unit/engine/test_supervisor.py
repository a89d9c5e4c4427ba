"""What keeps a loop alive must not keep alive what has to end, whatever a task group wrapped around it."""

import asyncio

import pytest
import structlog
from structlog.testing import LogCapture

from app.engine import supervisor
from app.engine.supervisor import keep
from app.errors import LeaseLost, Unavailable


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> LogCapture:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.001)
    capture = LogCapture()
    logger = structlog.wrap_logger(None, processors=[capture])
    monkeypatch.setattr(supervisor, "log", logger)
    return capture


async def in_groups(*errors: Exception) -> None:
    """Fail as loops do that run in task groups within task groups."""

    async def fail(error: Exception) -> None:
        raise error

    async with asyncio.TaskGroup() as outer:

        async def inner() -> None:
            async with asyncio.TaskGroup() as group:
                for error in errors:
                    group.create_task(fail(error))

        outer.create_task(inner())


async def test_lost_lease_ends_it_from_within_a_group(log: LogCapture) -> None:
    with pytest.raises(LeaseLost, match="over"):
        await keep("loop", lambda: in_groups(Unavailable("away"), LeaseLost("over")))
    assert [entry["event"] for entry in log.entries] == ["loop.failed"]


async def test_outage_within_a_group_is_a_line_without_a_traceback(log: LogCapture) -> None:
    runs = iter([in_groups(Unavailable("away")), asyncio.sleep(0)])
    await keep("loop", lambda: next(runs))
    (entry,) = log.entries
    assert (entry["event"], entry["error"]) == ("loop.failed", "away")
    assert "exc_info" not in entry


async def test_fault_of_our_own_within_a_group_is_shown_whole(log: LogCapture) -> None:
    fault = ValueError("ours")
    runs = iter([in_groups(fault), asyncio.sleep(0)])
    await keep("loop", lambda: next(runs))
    (entry,) = log.entries
    assert (entry["event"], entry["exc_info"]) == ("loop.crashed", fault)

"""Does the cluster misbehave exactly as it is asked to, and behave again afterwards?"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from app.sandbox.cluster import Sandbox
from app.sandbox.faults.plan import Fault
from tests.sandbox.client import JOBS, Client, Object, job

TRAIN = f"{JOBS}/train"


async def test_a_cluster_without_faults_behaves(client: Client, sandbox: Sandbox) -> None:
    await client.create(JOBS, job(suspend=True))
    assert sandbox.faults.listing() == []


async def test_a_dropped_request_is_not_done(client: Client, sandbox: Sandbox) -> None:
    number = sandbox.faults.add(Fault(kind="drop", verb="create", path="/jobs$"))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await client.create(JOBS, job(suspend=True))
    assert sandbox.faults.struck(number) == 1
    assert await client.items(JOBS) == []
    await client.create(JOBS, job(suspend=True))


async def test_a_cut_answer_hides_what_was_done(client: Client, sandbox: Sandbox) -> None:
    await client.create(JOBS, job(suspend=True))
    sandbox.faults.add(Fault(kind="cut", verb="patch", path="/jobs/train"))
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await client.patch(TRAIN, {"spec": {"suspend": False}})
    assert (await client.get(TRAIN))["spec"]["suspend"] is False


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (409, "Conflict"),
        (410, "Expired"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
    ],
)
async def test_a_status_is_answered(
    client: Client, sandbox: Sandbox, status: int, reason: str
) -> None:
    sandbox.faults.add(Fault(kind="status", path="/jobs", status=status, retry_after_s=7))
    answer = await client.call("POST", JOBS, job())
    assert (answer.status, answer.body["code"], answer.body["reason"]) == (status, status, reason)
    assert answer.headers["Retry-After"] == "7"
    assert answer.body["details"]["retryAfterSeconds"] == 7
    assert await client.items(JOBS) == []


async def test_faults_strike_the_nth_request_so_many_times(
    client: Client, sandbox: Sandbox
) -> None:
    sandbox.faults.add(Fault(kind="status", verb="get", path="/jobs/", nth=2, times=2, status=500))
    await client.create(JOBS, job(suspend=True))
    codes = [(await client.call("GET", TRAIN)).status for _ in range(5)]
    assert codes == [200, 500, 500, 200, 200]
    (entry,) = sandbox.faults.listing()
    assert (entry["seen"], entry["struck"]) == (5, 2)


async def test_a_fault_without_end_lasts_until_it_is_removed(
    client: Client, sandbox: Sandbox
) -> None:
    number = sandbox.faults.add(Fault(kind="status", verb="list", times=0, status=503))
    assert [(await client.call("GET", JOBS)).status for _ in range(3)] == [503] * 3
    assert sandbox.faults.remove(number)
    assert (await client.call("GET", JOBS)).status == 200


async def test_a_delayed_request_is_done_late(client: Client, sandbox: Sandbox) -> None:
    sandbox.faults.add(Fault(kind="delay", verb="list", delay_s=0.3))
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert await client.items(JOBS) == []
    assert 0.3 <= loop.time() - start < 2


async def test_a_hanging_request_is_never_answered(client: Client, sandbox: Sandbox) -> None:
    sandbox.faults.add(Fault(kind="hang", verb="create"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await client.create(JOBS, job(suspend=True))
    assert await client.items(JOBS) == []


async def test_silence_holds_requests_and_watches(client: Client, sandbox: Sandbox) -> None:
    version = (await client.get(JOBS))["metadata"]["resourceVersion"]
    async with client.watching(JOBS, resourceVersion=version) as events:
        sandbox.faults.stop_answering()
        listing = asyncio.create_task(client.items(JOBS))
        await sandbox.create({**job(suspend=True)})
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.2)
        assert not listing.done()
        assert not first.done()
        sandbox.faults.answer_again()
        assert len(await listing) == 1
        assert (await first)["type"] == "ADDED"


async def labelled(client: Client, count: int) -> None:
    """Make a Job that nobody touches, and change it so many times."""
    await client.create(JOBS, job(managedBy="example.com/nobody"))
    for number in range(count):
        (await client.patch(TRAIN, {"metadata": {"labels": {"n": str(number)}}})).ok()


async def told(events: AsyncIterator[Object], count: int) -> list[Any]:
    seen: list[Any] = []
    while len(seen) < count:
        event = await anext(events)
        seen.append(event["object"]["metadata"].get("labels", {}).get("n", event["type"]))
    return seen


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("repeat", ["ADDED", "0", "0", "1", "2"]),
        ("lose", ["ADDED", "1", "2"]),
        ("reorder", ["ADDED", "1", "0", "2"]),
    ],
)
async def test_watch_events_go_astray(
    client: Client, sandbox: Sandbox, kind: Any, expected: list[str]
) -> None:
    version = (await client.get(JOBS))["metadata"]["resourceVersion"]
    sandbox.faults.add(Fault(kind=kind, path="/jobs$", nth=2))
    async with client.watching(JOBS, resourceVersion=version) as events:
        await labelled(client, 3)
        assert await told(events, len(expected)) == expected


async def test_a_watch_is_told_that_its_version_is_gone(client: Client, sandbox: Sandbox) -> None:
    version = (await client.get(JOBS))["metadata"]["resourceVersion"]
    sandbox.faults.add(Fault(kind="gone", path="/jobs$", nth=2))
    async with client.watching(JOBS, resourceVersion=version) as events:
        await labelled(client, 1)
        assert (await anext(events))["type"] == "ADDED"
        error = await anext(events)
        assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
        with pytest.raises(StopAsyncIteration):
            await anext(events)


async def test_a_watch_breaks_in_the_middle(client: Client, sandbox: Sandbox) -> None:
    version = (await client.get(JOBS))["metadata"]["resourceVersion"]
    sandbox.faults.add(Fault(kind="break", path="/jobs$", nth=2))
    async with client.watching(JOBS, resourceVersion=version) as events:
        await labelled(client, 1)
        assert (await anext(events))["type"] == "ADDED"
        with pytest.raises(aiohttp.ClientError):
            await anext(events)


async def test_compaction_makes_old_watches_start_over(client: Client, sandbox: Sandbox) -> None:
    await labelled(client, 2)
    sandbox.compact()
    async with client.watching(JOBS, resourceVersion="1") as events:
        error = await anext(events)
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
    await client.create(JOBS, job("after"))
    await client.until(f"{JOBS}/after", lambda found: found["status"].get("succeeded") == 1)


async def test_faults_are_asked_for_over_http(client: Client, sandbox: Sandbox) -> None:
    made = await client.create(
        "/sandbox/faults", {"kind": "status", "verb": "list", "times": 0, "status": 503}
    )
    assert (await client.call("GET", JOBS)).status == 503
    (entry,) = (await client.get("/sandbox/faults"))["faults"]
    assert (entry["id"], entry["kind"], entry["struck"]) == (made["id"], "status", 1)
    assert (await client.call("DELETE", f"/sandbox/faults/{made['id']}")).status == 204
    assert (await client.call("GET", JOBS)).status == 200
    assert (await client.call("DELETE", "/sandbox/faults/99")).status == 404
    assert (await client.call("POST", "/sandbox/silence")).status == 204
    assert sandbox.faults.silent
    assert (await client.call("DELETE", "/sandbox/silence")).status == 204
    assert (await client.call("POST", "/sandbox/compact")).status == 204


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"kind": "explode"}, 422),
        ({"kind": "drop", "path": "("}, 422),
        ({"kind": "drop", "colour": "red"}, 400),
        (["drop"], 400),
    ],
)
async def test_a_fault_that_is_none_is_refused(client: Client, fault: Any, status: int) -> None:
    assert (await client.call("POST", "/sandbox/faults", fault)).status == status


async def test_the_control_needs_the_token(sandbox: Sandbox, client: Client) -> None:
    sandbox.token = "another"
    assert (await client.call("GET", "/sandbox/faults")).status == 401
    assert (await client.call("GET", JOBS)).status == 401

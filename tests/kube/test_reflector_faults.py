"""Does a reflector survive what clusters and networks do, without hammering and without losing anything?"""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from app.errors import Unavailable
from app.kube.client import KubeClient
from app.kube.codec import ManifestCodec
from app.kube.config import ClusterConfig
from app.kube.lines import MOST_BYTES
from app.kube.reflector import Reflector, Source
from tests.kube.api import (
    Api,
    answers,
    bookmark,
    event,
    expired,
    gone,
    running_api,
    says,
    stream,
)
from tests.kube.receiver import QUICK, WIDGETS, Receiver, following


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Api]:
    async with running_api() as server:
        server.put("a", n=1)
        yield server


def versions(api: Api) -> list[str]:
    return [query["resourceVersion"] for _, verb, query in api.requests if verb == "watch"]


async def test_a_line_cut_in_the_middle_is_read_again_from_the_last_whole_event(api: Api) -> None:
    first, second = api.put("b", n=2), api.put("c", n=3)
    del api.objects["b"], api.objects["c"]
    api.version -= 2
    whole = event("ADDED", second)
    api.watch_faults.append(says(event("ADDED", first), whole[: len(whole) // 2], cut=True))
    receiver = Receiver()
    async with following(api.url, receiver):
        await receiver.until({"a": 1, "b": 2, "c": 3})
    assert versions(api)[:2] == ["101", "102"]
    assert api.count("list") == 1


async def test_events_cut_into_pieces_anywhere(api: Api) -> None:
    raw = event("ADDED", api.put("b", n="ü€")) + event("ADDED", api.put("c", n=3))
    del api.objects["b"], api.objects["c"]
    api.watch_faults.append(says(*(raw[at : at + 3] for at in range(0, len(raw), 3)), hold=True))
    receiver = Receiver()
    async with following(api.url, receiver):
        await receiver.until({"a": 1, "b": "ü€", "c": 3})
    assert api.count("watch") == 1


@pytest.mark.parametrize("how", ["event", "answer"])
async def test_expired_means_list_again_and_find_what_vanished(api: Api, how: str) -> None:
    api.put("b", n=2)
    receiver = Receiver()

    async def expire(request: web.Request) -> web.StreamResponse:
        api.remove("a", silently=True)
        api.put("c", n=3)
        return gone() if how == "answer" else await says(expired())(request)

    api.watch_faults.append(expire)
    async with following(api.url, receiver):
        await receiver.until({"b": 2, "c": 3})
    assert receiver.deleted == ["uid-a"]
    assert api.count("list") == 2
    changed = [m["metadata"]["name"] for batch in receiver.batches for m in batch.changed]
    assert changed == ["a", "b", "c"], "what did not change is not told twice"


async def test_an_expired_page_starts_the_list_again(api: Api) -> None:
    for number in range(4):
        api.put(f"w{number}", n=number)

    async def lose(_request: web.Request) -> web.StreamResponse:
        api.remove("a", silently=True)
        return gone()

    api.list_faults.extend([api.list, lose])
    receiver = Receiver()
    async with following(api.url, receiver, page=2):
        await receiver.until({f"w{number}": number for number in range(4)})
    assert "uid-a" in receiver.deleted, "told in the first list, gone before the second"


HTML = "<html><body>503 Service Unavailable\n\n\n</body></html>"


@pytest.mark.parametrize(
    "fault",
    [answers(503, HTML), answers(200, HTML), answers(500, "{}", "application/json")],
    ids=["503", "200 with html", "500"],
)
async def test_a_page_of_html_is_no_event(api: Api, fault: Any) -> None:
    api.watch_faults.extend([fault] * 3)
    api.list_faults.extend([fault] * 3)
    receiver = Receiver()
    async with following(api.url, receiver) as reflector:
        await receiver.until({"a": 1})
        api.put("b", n=2)
        await api.publish()
        await receiver.until({"a": 1, "b": 2})
        assert reflector.health.events == 1
        assert reflector.health.undecodable == 0


async def test_retry_after_is_obeyed(api: Api) -> None:
    api.list_faults.append(answers(429, "slow down", "text/plain", Retry_After="1"))
    receiver = Receiver()
    async with following(api.url, receiver):
        await receiver.until({"a": 1})
    first, second = api.times("list")
    assert second - first >= 1.0


async def test_closing_at_once_makes_it_back_off(api: Api) -> None:
    api.watch_faults.extend([says()] * 1000)
    receiver = Receiver()
    async with following(api.url, receiver):
        await asyncio.sleep(1.5)
    times = api.times("watch")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert 5 <= len(times) <= 25
    assert gaps[-1] > 3 * gaps[0]


async def test_refusing_connections_makes_it_back_off_and_come_back() -> None:
    async with running_api() as api:
        api.put("a", n=1)
        url = api.url
        receiver = Receiver()
        api.list_faults.extend([answers(403, "no", "text/plain")] * 3)
        async with following(url, receiver) as reflector:
            await asyncio.sleep(0.05)
            assert "403" in reflector.health.error
            await receiver.until({"a": 1})
            await asyncio.sleep(0.1)
            assert reflector.health.error == ""


async def test_silence_is_a_dead_peer_or_a_quiet_cluster_and_the_watch_goes_on(api: Api) -> None:
    api.watch_faults.append(says(hold=True))
    receiver = Receiver()
    async with following(api.url, receiver, silence_s=0.3) as reflector:
        await reflector.health.synced.wait()
        api.put("b", n=2)
        await receiver.until({"a": 1, "b": 2})
    assert (api.count("watch"), api.count("look"), api.count("list")) == (2, 1, 1)
    assert versions(api) == ["101", "101"]


@pytest.mark.parametrize("hold", [True, False], ids=["silent", "ended in silence"])
async def test_a_watch_from_the_future_of_a_restored_cluster_ends_in_a_list(
    api: Api, hold: bool
) -> None:
    """kube-apiserver says nothing at all on such a watch, and ends it at its time without a word."""

    async def future(request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        await asyncio.sleep(60 if hold else 0.3)
        return response

    async def restored(request: web.Request) -> web.StreamResponse:
        answer = await api.list(request)
        api.objects.clear()
        api.log.clear()
        api.version = 40
        api.put("b", n=2)
        return answer

    api.list_faults.append(restored)
    api.watch_faults.append(future)
    receiver = Receiver()
    async with following(api.url, receiver, silence_s=0.5):
        await receiver.until({"b": 2})
        api.put("b", n=3)
        await api.publish()
        await receiver.until({"b": 3})
    assert api.count("list") == 2


async def test_bookmarks_are_signs_of_life_and_move_the_version(api: Api) -> None:
    async def bookmarks(request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        for number in range(8):
            await asyncio.sleep(0.1)
            await response.write(bookmark(500 + number))
        return response

    api.watch_faults.append(bookmarks)
    receiver = Receiver()
    async with following(api.url, receiver, silence_s=0.4) as reflector:
        await reflector.health.synced.wait()
        await asyncio.sleep(1.2)
    assert versions(api)[:2] == ["101", "507"]
    assert receiver.world["a"]["metadata"]["resourceVersion"] == "101"


async def test_repeated_and_overtaken_events_change_nothing(api: Api) -> None:
    old, new = api.put("b", n=1), api.put("b", n=2)
    last = api.put("z", n=9)
    api.log.clear()
    for name in ("b", "z"):
        del api.objects[name]
    api.version = 101
    pieces = [event("ADDED", old), event("MODIFIED", new), event("MODIFIED", old)]
    api.watch_faults.append(says(*pieces, *pieces, event("ADDED", last), hold=True))
    receiver = Receiver()
    async with following(api.url, receiver, window_s=0.0, batch=1):
        await receiver.until({"a": 1, "b": 2, "z": 9})
    told = [m["spec"]["n"] for batch in receiver.batches for m in batch.changed]
    assert told in ([1, 1, 2, 9], [1, 2, 9])


async def test_a_delete_that_arrives_late_does_not_kill_the_successor(api: Api) -> None:
    first = api.put("b", uid="first", n=1)
    second = api.put("b", uid="second", n=2)
    last = api.put("z", n=9)
    del api.objects["b"], api.objects["z"]
    api.version = 101
    pieces = [event("ADDED", first), event("ADDED", second), event("DELETED", first)]
    api.watch_faults.append(says(*pieces, event("ADDED", last), hold=True))
    receiver = Receiver()
    async with following(api.url, receiver):
        await receiver.until({"a": 1, "b": 2, "z": 9})
    assert receiver.deleted == ["first"]


async def test_a_line_without_end_is_given_up_and_listed_past(api: Api) -> None:
    piece = b'{"type":"ADDED","object":"' + b"x" * (1 << 20)
    api.watch_faults.append(says(*[piece] * (MOST_BYTES // (1 << 20) + 2), hold=True))
    receiver = Receiver()
    async with following(api.url, receiver) as reflector:
        await reflector.health.synced.wait()
        api.put("b", n=2)
        await receiver.until({"a": 1, "b": 2}, timeout_s=20)
    assert api.count("list") == 2


async def test_broken_json_in_the_stream_is_left_for_a_new_watch(api: Api) -> None:
    api.watch_faults.append(says(b"{nonsense\n", hold=True))
    receiver = Receiver()
    async with following(api.url, receiver) as reflector:
        await reflector.health.synced.wait()
        api.put("b", n=2)
        await receiver.until({"a": 1, "b": 2})
    assert api.count("watch") == 2


async def test_an_object_that_cannot_be_read_does_not_stop_the_others(api: Api) -> None:
    odd = json.dumps({"type": "ADDED", "object": {"metadata": {"name": 3}}}).encode() + b"\n"
    good = event("ADDED", api.put("b", n=2))
    del api.objects["b"]
    api.watch_faults.append(says(odd, b'{"type":"ADDED","object":[]}\n', good, hold=True))
    receiver = Receiver()
    async with following(api.url, receiver) as reflector:
        await receiver.until({"a": 1, "b": 2})
    assert reflector.health.undecodable == 2


async def test_a_watch_that_never_gets_anywhere_is_listed_anew(api: Api) -> None:
    """A restored etcd: our version lies in its future, and every watch from there fails."""
    future = {"kind": "Status", "code": 504, "reason": "Timeout", "message": "Too large"}
    api.watch_faults.extend([answers(504, json.dumps(future), "application/json")] * 8)
    receiver = Receiver()
    async with following(api.url, receiver) as reflector:
        await reflector.health.synced.wait()
        api.version = 50
        api.objects.clear()
        api.put("b", n=2)
        await receiver.until({"b": 2})
    assert api.count("list") >= 2


async def test_a_new_run_starts_over_with_a_list(api: Api) -> None:
    """What the first run had not handed over must not be taken for told."""
    receiver = Receiver(failures=[Unavailable("away")] * 1000)
    async with KubeClient(ClusterConfig(server=api.url)) as client:
        source = Source(resource=WIDGETS, codec=ManifestCodec())
        reflector = Reflector(client, source, receiver, random=Random(1), pace=QUICK)
        for _ in range(2):
            task = asyncio.create_task(reflector.run())
            await asyncio.sleep(0.2)
            assert receiver.world == {}
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        receiver.failures.clear()
        task = asyncio.create_task(reflector.run())
        await receiver.until({"a": 1})
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert api.count("list") == 3

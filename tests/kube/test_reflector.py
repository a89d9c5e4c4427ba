"""Does a reflector tell all that is, all that changes and all that vanishes, when the cluster behaves?"""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio

from app.errors import Invalid, Unavailable
from tests.kube.api import Api, running_api
from tests.kube.receiver import Receiver, following


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Api]:
    async with running_api() as server:
        yield server


async def test_list_comes_in_pages_and_ends_in_a_full_batch(api: Api) -> None:
    for number in range(7):
        api.put(f"w{number}", n=number)
    receiver = Receiver()
    async with following(api.url, receiver, page=3, batch=2) as reflector:
        await asyncio.wait_for(reflector.health.synced.wait(), 5)
    assert receiver.sizes == {f"w{number}": number for number in range(7)}
    assert [batch.full for batch in receiver.batches] == [False, False, False, True]
    assert [batch.synced for batch in receiver.batches] == [False, False, False, True]
    assert [query.get("continue") for _, verb, query in api.requests if verb == "list"] == [
        None,
        "3",
        "6",
    ]
    assert reflector.health.lists == 1


async def test_an_empty_cluster_is_a_full_batch_too(api: Api) -> None:
    receiver = Receiver()
    async with following(api.url, receiver) as reflector:
        await asyncio.wait_for(reflector.health.synced.wait(), 5)
    assert [(batch.changed, batch.full) for batch in receiver.batches] == [([], True)]


async def test_changes_arrive_and_managed_fields_do_not(api: Api) -> None:
    api.put("a", n=1)
    receiver = Receiver()
    async with following(api.url, receiver):
        await receiver.until({"a": 1})
        api.put("a", n=2)
        api.put("b", n=3)
        await api.publish()
        await receiver.until({"a": 2, "b": 3})
        api.remove("a")
        await api.publish()
        await receiver.until({"b": 3})
    assert receiver.deleted == ["uid-a"]
    assert api.count("list") == 1
    for batch in receiver.batches:
        for manifest in batch.changed:
            assert manifest["kind"] == "Widget"
            assert manifest["apiVersion"] == "x.dev/v1"
            assert "managedFields" not in manifest["metadata"]


async def test_many_changes_of_one_object_collapse(api: Api) -> None:
    receiver = Receiver()
    async with following(api.url, receiver, window_s=0.2) as reflector:
        await reflector.health.synced.wait()
        for number in range(100):
            api.put("a", n=number)
        await api.publish()
        await receiver.until({"a": 99})
    assert sum(len(batch.changed) for batch in receiver.batches) == 1
    assert reflector.health.events == 100


async def test_an_object_made_anew_under_its_name_is_deleted_and_changed(api: Api) -> None:
    api.put("a", uid="first", n=1)
    receiver = Receiver()
    async with following(api.url, receiver, window_s=0.2):
        await receiver.until({"a": 1})
        api.remove("a")
        api.put("a", uid="second", n=2)
        await api.publish()
        await receiver.until({"a": 2})
    assert receiver.deleted == ["first"]
    assert receiver.world["a"]["metadata"]["uid"] == "second"


async def test_what_vanished_while_we_were_down_is_reported(api: Api) -> None:
    api.put("kept", n=1)
    api.put("renewed", uid="new", n=2)

    async def known() -> Mapping[tuple[str, str], str]:
        return {
            ("ns", "kept"): "uid-kept",
            ("ns", "lost"): "uid-lost",
            ("ns", "renewed"): "old",
        }

    receiver = Receiver()
    async with following(api.url, receiver, known=known) as reflector:
        await asyncio.wait_for(reflector.health.synced.wait(), 5)
    assert sorted(receiver.deleted) == ["old", "uid-lost"]
    assert receiver.batches[-1].full


async def test_a_receiver_that_fails_gets_the_same_batch_again(api: Api) -> None:
    api.put("a", n=1)
    receiver = Receiver(failures=[Unavailable("database away"), OSError("cut")])
    async with following(api.url, receiver):
        await receiver.until({"a": 1})
    assert len(receiver.refused) == 2
    assert receiver.batches[0] == receiver.refused[0] == receiver.refused[1]


async def test_changes_made_while_the_receiver_is_down_are_not_lost(api: Api) -> None:
    receiver = Receiver()
    async with following(api.url, receiver) as reflector:
        await reflector.health.synced.wait()
        receiver.failures = [Unavailable("away")] * 4
        for number in range(20):
            api.put(f"w{number}", n=number)
            await api.publish()
            await asyncio.sleep(0.005)
        await receiver.until({f"w{number}": number for number in range(20)})
    assert receiver.failures == []
    assert api.count("list") == 1


async def test_an_error_of_the_receiver_that_cannot_heal_ends_the_run(api: Api) -> None:
    async def run() -> None:
        async with following(api.url, Receiver(failures=[Invalid("a bug")])):
            await asyncio.sleep(0.5)

    with pytest.raises(Invalid, match="a bug"):
        await run()


async def test_a_reader_far_ahead_of_its_receiver_is_held_back(api: Api) -> None:
    for number in range(200):
        api.put(f"w{number:03}", n=number)
    gate = asyncio.Event()
    taken: list[int] = []

    class Slow(Receiver):
        async def __call__(self, batch: object) -> None:
            await gate.wait()
            await super().__call__(batch)  # type: ignore[arg-type]
            taken.append(len(self.world))

    receiver = Slow()
    async with following(api.url, receiver, page=10, batch=5):
        await asyncio.sleep(0.3)
        held = api.count("list")
        gate.set()
        await receiver.until({f"w{number:03}": number for number in range(200)})
    assert held <= 4
    assert api.count("list") == 20

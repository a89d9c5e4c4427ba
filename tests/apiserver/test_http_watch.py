"""Watches over plain HTTP: where they start, what they tell, how they end."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.apiserver.running import Running, running
from tests.apiserver.test_http_bodies import MERGE, collection, status
from tests.apiserver.toys import GROUP, workshop

Events = AsyncIterator[dict[str, Any]]


@asynccontextmanager
async def watching(
    http: httpx2.AsyncClient, path: str, accept: str = "", **params: str
) -> AsyncIterator[Events]:
    headers = {"Accept": accept} if accept else {}
    async with http.stream(
        "GET", path, params={"watch": "true", **params}, headers=headers
    ) as answer:
        assert answer.status_code == 200, await answer.aread()
        lines = answer.aiter_lines()

        async def events() -> Events:
            async for line in lines:
                yield json.loads(line)

        yield events()


async def take(events: Events, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(10):
        return [await anext(events) for _ in range(count)]


def seen(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def make(http: httpx2.AsyncClient, namespace: str, name: str, **labels: str) -> None:
    manifest = workshop(name, namespace=namespace)
    manifest["metadata"]["labels"] = labels
    answer = await http.post(collection(namespace), json=manifest)
    assert answer.status_code == 201, answer.text


async def version_of(http: httpx2.AsyncClient, path: str) -> str:
    return str((await http.get(path)).json()["metadata"]["resourceVersion"])


async def test_from_a_number_or_from_the_present(http: httpx2.AsyncClient, namespace: str) -> None:
    path = collection(namespace)
    await make(http, namespace, "a")
    number = await version_of(http, path)
    await make(http, namespace, "b")
    await http.delete(f"{path}/a")
    async with watching(http, path, resourceVersion=number) as events:
        told = await take(events, 2)
        assert seen(told) == [("ADDED", "b"), ("DELETED", "a")]
        assert int(told[1]["object"]["metadata"]["resourceVersion"]) > int(
            told[0]["object"]["metadata"]["resourceVersion"]
        )
    for start in ({}, {"resourceVersion": "0"}):
        async with watching(http, path, **start) as events:
            assert seen(await take(events, 1)) == [("ADDED", "b")]
            await http.patch(f"{path}/b", json={"spec": {"size": 7}}, headers=MERGE)
            assert (await take(events, 1))[0]["object"]["spec"]["size"] == 7
            await http.patch(f"{path}/b", json={"spec": {"size": 8}}, headers=MERGE)
            assert seen(await take(events, 1)) == [("MODIFIED", "b")]


async def test_initial_events_end_with_a_bookmark(http: httpx2.AsyncClient, namespace: str) -> None:
    path = collection(namespace)
    await make(http, namespace, "a")
    await make(http, namespace, "b")
    asked = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    async with watching(http, path, **asked) as events:
        told = await take(events, 3)
        assert seen(told) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
        end = told[2]["object"]
        assert end["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert (end["kind"], end["apiVersion"]) == ("Workshop", f"{GROUP}/v1")
        assert end["metadata"]["resourceVersion"] == await version_of(http, path)
        await make(http, namespace, "c")
        told = await take(events, 1)
        while told[0]["type"] == "BOOKMARK":
            told = await take(events, 1)
        assert seen(told) == [("ADDED", "c")]
    async with watching(http, path, **{**asked, "sendInitialEvents": "false"}) as events:
        await make(http, namespace, "d")
        told = await take(events, 1)
        while told[0]["type"] == "BOOKMARK":
            told = await take(events, 1)
        assert seen(told) == [("ADDED", "d")]
    for wrong in (
        {"allowWatchBookmarks": "false"},
        {"resourceVersionMatch": ""},
        {"watch": "false"},
    ):
        status(await http.get(path, params={"watch": "true", **asked, **wrong}), 422, "Invalid")


async def test_bookmarks_come_only_when_asked_for(http: httpx2.AsyncClient, namespace: str) -> None:
    path = collection(namespace)
    number = await version_of(http, path)
    await make(http, f"{namespace}-other", "elsewhere")
    async with watching(http, path, resourceVersion=number, allowWatchBookmarks="true") as events:
        told = await take(events, 1)
        assert told[0]["type"] == "BOOKMARK"
        assert int(told[0]["object"]["metadata"]["resourceVersion"]) > int(number)
    async with watching(http, path, resourceVersion=number, timeoutSeconds="1") as events:
        assert [event async for event in events] == []


async def test_selection_and_single_objects(http: httpx2.AsyncClient, namespace: str) -> None:
    path = collection(namespace)
    await make(http, namespace, "a", tier="gold")
    await make(http, namespace, "b")
    number = await version_of(http, path)
    for name, tier in (("b", "gold"), ("a", "tin"), ("b", "gold")):
        await http.patch(
            f"{path}/{name}", json={"metadata": {"labels": {"tier": tier}}}, headers=MERGE
        )
    await http.delete(f"{path}/a")
    await http.delete(f"{path}/b")
    async with watching(http, path, resourceVersion=number, labelSelector="tier=gold") as events:
        assert seen(await take(events, 3)) == [("ADDED", "b"), ("DELETED", "a"), ("DELETED", "b")]
    async with watching(http, f"{path}/a", resourceVersion=number) as events:
        assert seen(await take(events, 2)) == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_other_forms_and_versions(http: httpx2.AsyncClient, namespace: str) -> None:
    await make(http, namespace, "a")
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    async with watching(http, collection(namespace), accept) as events:
        assert sorted((await take(events, 1))[0]["object"]) == ["apiVersion", "kind", "metadata"]
    async with watching(http, collection(namespace, "v1alpha1")) as events:
        told = (await take(events, 1))[0]["object"]
        assert (told["apiVersion"], told["spec"]) == (f"{GROUP}/v1alpha1", {"places": 1})
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with watching(http, collection(namespace), table) as events:
        await make(http, namespace, "b")
        first, second = await take(events, 2)
        assert len(first["object"]["columnDefinitions"]) == 5
        assert second["object"]["columnDefinitions"] == []
        assert [one["object"]["rows"][0]["cells"][0] for one in (first, second)] == ["a", "b"]


@pytest.mark.parametrize("how", ["compacted", "overrun", "restarted"])
async def test_a_number_that_is_gone_ends_with_410(
    certificate: Path, namespace: str, how: str
) -> None:
    headers = {"Authorization": "Bearer alice-token"}
    async with (
        running(certificate, log_limit=3) as api,
        httpx2.AsyncClient(base_url=api.url, headers=headers, verify=False) as http,
    ):
        for name in "abcdefgh" if how == "overrun" else "ab":
            await make(http, namespace, name)
        if how == "compacted":
            api.storage.compact()
        number = "9999" if how == "restarted" else "1"
        async with watching(http, collection(namespace), resourceVersion=number) as events:
            told = [event async for event in events]
        assert [event["type"] for event in told] == ["ERROR"]
        assert (told[0]["object"]["code"], told[0]["object"]["reason"]) == (410, "Expired")
        async with watching(
            http, collection(namespace), resourceVersion=str(api.storage.revision)
        ) as events:
            await make(http, namespace, "z")
            assert seen(await take(events, 1)) == [("ADDED", "z")]


async def test_time_out_and_shutdown_end_streams(certificate: Path, namespace: str) -> None:
    headers = {"Authorization": "Bearer alice-token"}
    path = collection(namespace)
    async with (
        running(certificate) as api,
        httpx2.AsyncClient(base_url=api.url, headers=headers, verify=False) as http,
    ):
        async with watching(http, path, timeoutSeconds="1") as events:
            begun = time.monotonic()
            assert [event async for event in events] == []
            assert 0.8 < time.monotonic() - begun < 5
        async with watching(http, path) as events:
            api.server.stopping.set()
            async with asyncio.timeout(3):
                assert [event async for event in events] == []
        assert (await http.get("/readyz")).status_code == 503


async def test_a_client_that_leaves_frees_its_watch(
    api: Running, http: httpx2.AsyncClient, namespace: str
) -> None:
    def pumps() -> int:
        return sum("WatchStream._pump" in repr(task) for task in asyncio.all_tasks())

    before = pumps()
    async with watching(http, collection(namespace)):
        await asyncio.sleep(0.1)
        assert pumps() == before + 1
    async with asyncio.timeout(5):
        while pumps() > before:  # noqa: ASYNC110 (nobody tells when a task is gone)
            await asyncio.sleep(0.02)


async def test_many_watches_see_the_same_changes(
    api: Running, http: httpx2.AsyncClient, namespace: str
) -> None:
    wanted = [("ADDED", f"w{number}") for number in range(20)]
    number = str(api.storage.revision)

    async def follow() -> list[tuple[str, str]]:
        async with watching(http, collection(namespace), resourceVersion=number) as events:
            return seen(await take(events, len(wanted)))

    followers = [asyncio.create_task(follow()) for _ in range(8)]
    for _, name in wanted:
        await make(http, namespace, name)
    assert await asyncio.gather(*followers) == [wanted] * 8

"""Do watches tell the same story on both clusters, and does a reflector keep up with it?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import orjson

from app.kube import errors
from app.kube.client import KubeClient, Selection, WatchStart
from app.kube.codec import ManifestCodec
from app.kube.lines import LineSplitter
from app.kube.reflector import Known, Reflector, Source, nothing_known
from app.kube.resources import JOBS
from tests.kube.contract.cluster import Cluster, fresh, job, suspended
from tests.kube.receiver import QUICK, Receiver


async def events(
    client: KubeClient, selection: Selection, version: str, *, timeout_s: int = 60
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    start = WatchStart(resource_version=version, timeout_s=timeout_s, silence_s=90)
    splitter = LineSplitter()
    async with client.watch(JOBS, selection, start) as chunks:
        async for chunk in chunks:
            for line in splitter.feed(chunk):
                event = orjson.loads(line)
                yield event["type"], event["object"]


async def test_a_watch_tells_changes_in_order(client: KubeClient, namespace: str) -> None:
    selection = Selection(namespace=namespace)
    version = (await client.list(JOBS, selection)).resource_version
    told: list[tuple[str, str, str]] = []
    await client.create(JOBS, namespace, job("a"))
    async with asyncio.timeout(30):
        async for kind, manifest in events(client, selection, version):
            annotation = manifest["metadata"].get("annotations", {}).get("step", "")
            if not told or told[-1] != (kind, manifest["metadata"]["name"], annotation):
                told.append((kind, manifest["metadata"]["name"], annotation))
            assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "Job")
            if kind == "ADDED":
                patch = {"metadata": {"annotations": {"step": "1"}}}
                await client.patch(JOBS, namespace, "a", patch)
            elif kind == "MODIFIED" and annotation == "1" and "status" in manifest:
                await client.delete(JOBS, namespace, "a")
            elif kind == "DELETED":
                break
    kept = [entry for entry in told if entry != ("MODIFIED", "a", "")]
    assert kept == [("ADDED", "a", ""), ("MODIFIED", "a", "1"), ("DELETED", "a", "1")]


async def test_a_label_selector_makes_leaving_a_deletion(
    client: KubeClient, namespace: str
) -> None:
    selection = Selection(namespace=namespace, labels="kueue.x-k8s.io/queue-name")
    version = (await client.list(JOBS, selection)).resource_version
    await client.create(JOBS, namespace, job("other"))
    await client.create(JOBS, namespace, job("mine", labels={"kueue.x-k8s.io/queue-name": "q"}))
    told: list[tuple[str, str]] = []
    async with asyncio.timeout(30):
        async for kind, manifest in events(client, selection, version):
            told.append((kind, manifest["metadata"]["name"]))
            if kind == "ADDED":
                labels = {"kueue.x-k8s.io/queue-name": None}
                await client.patch(JOBS, namespace, "mine", {"metadata": {"labels": labels}})
            if kind == "DELETED":
                break
    assert {name for _, name in told} == {"mine"}
    assert told[0][0] == "ADDED"


async def test_a_quiet_watch_says_at_most_bookmarks_and_ends_in_time(
    client: KubeClient, namespace: str
) -> None:
    """No server promises a bookmark within any time, and a real one under load does without now and then."""
    selection = Selection(namespace=namespace)
    version = (await client.list(JOBS, selection)).resource_version
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await client.create(JOBS, "default", job(fresh("elsewhere")))
    told = [event async for event in events(client, selection, version, timeout_s=5)]
    assert 4 < loop.time() - begun < 30
    bookmarks = [manifest for kind, manifest in told if kind == "BOOKMARK"]
    assert len(bookmarks) == len(told)
    assert all(int(one["metadata"]["resourceVersion"]) >= int(version) for one in bookmarks)


async def test_a_look_at_one_object_tells_where_the_cluster_is(
    client: KubeClient, namespace: str
) -> None:
    """Where nothing changes there may be no bookmark for a long time, so this is how a reflector finds out."""
    empty = await client.list(JOBS, Selection(namespace=namespace), limit=1)
    created = await client.create(JOBS, "default", job(fresh("elsewhere")))
    after = await client.list(JOBS, Selection(namespace=namespace), limit=1)
    assert after.items == []
    assert int(after.resource_version) >= int(created["metadata"]["resourceVersion"])
    assert int(after.resource_version) > int(empty.resource_version)


async def test_an_old_version_is_expired(
    cluster: Cluster, client: KubeClient, namespace: str
) -> None:
    """As an answer or as the stream's first event: both are allowed, and both lead to a new list."""
    await client.create(JOBS, namespace, job())
    await suspended(client, namespace)
    await cluster.forget_the_past()
    try:
        async for kind, status in events(client, Selection(namespace=namespace), "1"):
            assert kind == "ERROR"
            assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
            break
    except errors.KubeGone:
        return


async def test_a_version_from_the_future_tells_of_no_object(
    client: KubeClient, namespace: str
) -> None:
    """A real apiserver is silent to the end, without a bookmark; an error would be as good."""
    await client.create(JOBS, namespace, job())
    selection = Selection(namespace=namespace)
    told = [event async for event in events(client, selection, "999999999", timeout_s=3)]
    assert {kind for kind, _ in told} <= {"ERROR"}


@asynccontextmanager
async def reflecting(
    client: KubeClient, selection: Selection, receiver: Receiver, known: Known = nothing_known
) -> AsyncIterator[Reflector[Any]]:
    source = Source(resource=JOBS, codec=ManifestCodec(), selection=selection)
    reflector = Reflector(client, source, receiver, random=Random(1), known=known, pace=QUICK)
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def world(receiver: Receiver) -> list[str]:
    return sorted(receiver.world)


async def until(receiver: Receiver, expected: list[str]) -> None:
    async with asyncio.timeout(30):
        while world(receiver) != expected:
            receiver.arrived.clear()
            await receiver.arrived.wait()


async def test_a_reflector_follows_jobs(client: KubeClient, namespace: str) -> None:
    for number in range(3):
        await client.create(JOBS, namespace, job(f"job-{number}"))
    receiver = Receiver()

    async def known() -> dict[tuple[str, str], str]:
        return {(namespace, "lost"): "uid-of-lost"}

    async with reflecting(client, Selection(namespace=namespace), receiver, known):
        await until(receiver, ["job-0", "job-1", "job-2"])
        await client.create(JOBS, namespace, job("job-3"))
        await client.delete(JOBS, namespace, "job-1")
        await until(receiver, ["job-0", "job-2", "job-3"])
    assert "uid-of-lost" in receiver.deleted
    for manifest in receiver.world.values():
        assert manifest["kind"] == "Job"
        assert "managedFields" not in manifest["metadata"]


async def test_a_job_made_anew_under_its_name(client: KubeClient, namespace: str) -> None:
    first = await client.create(JOBS, namespace, job())
    receiver = Receiver()
    async with reflecting(client, Selection(namespace=namespace), receiver):
        await until(receiver, ["train"])
        await client.delete(JOBS, namespace, "train")
        while True:
            try:
                second = await client.create(JOBS, namespace, job())
                break
            except errors.KubeAlreadyExists:
                await asyncio.sleep(0.05)
        async with asyncio.timeout(30):
            while (
                receiver.world.get("train", first)["metadata"]["uid"] != second["metadata"]["uid"]
            ):
                receiver.arrived.clear()
                await receiver.arrived.wait()
    assert first["metadata"]["uid"] in receiver.deleted

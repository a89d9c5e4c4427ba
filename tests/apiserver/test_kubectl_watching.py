"""What waits: get --watch, wait, and delete until gone."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.apiserver.running import Kubectl
from tests.apiserver.toys import tool, workshop


@asynccontextmanager
async def watching(kubectl: Kubectl, *args: str) -> AsyncIterator[asyncio.StreamReader]:
    process = await kubectl.start("get", "ws", "--watch", *args)
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.communicate()


async def line(reader: asyncio.StreamReader) -> list[str]:
    return (await asyncio.wait_for(reader.readline(), 10)).decode().split()


async def test_get_watch_prints_rows_as_they_change(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin=workshop("one", namespace=kubectl.namespace, size=1))
    async with watching(kubectl, "--output-watch-events") as rows:
        assert await line(rows) == ["EVENT", "NAME", "SIZE", "READY", "AGE"]
        assert (await line(rows))[:3] == ["ADDED", "one", "1"]
        await kubectl("patch", "ws", "one", "--type=merge", "-p", '{"spec":{"size":7}}')
        assert (await line(rows))[:3] == ["MODIFIED", "one", "7"]
        await kubectl("create", "-f", "-", stdin=workshop("two", namespace=kubectl.namespace))
        assert (await line(rows))[:3] == ["ADDED", "two", "1"]
        await kubectl("delete", "ws", "one", "--wait=false")
        assert (await line(rows))[:3] == ["DELETED", "one", "7"]


async def test_watch_follows_a_selection(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin=workshop("one", namespace=kubectl.namespace))
    async with watching(
        kubectl, "--watch-only", "-l", "tier=gold", "--output-watch-events", "--no-headers"
    ) as rows:
        await asyncio.sleep(0.5)
        await kubectl("label", "ws", "one", "tier=gold")
        assert (await line(rows))[:2] == ["ADDED", "one"]
        await kubectl("label", "ws", "one", "tier=tin", "--overwrite")
        assert (await line(rows))[:2] == ["DELETED", "one"]


async def test_watch_gives_json(kubectl: Kubectl) -> None:
    async with watching(kubectl, "-o", "json", "--watch-only") as out:
        await asyncio.sleep(0.5)
        await kubectl(
            "create", "-f", "-", stdin=workshop("one", namespace=kubectl.namespace, size=4)
        )
        text = b""
        while not text.endswith(b"\n}\n"):
            text += await asyncio.wait_for(out.readline(), 10)
        assert json.loads(text)["spec"] == {"size": 4}


async def test_wait_for_a_condition_and_a_value(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin=workshop("one", namespace=kubectl.namespace))
    waits = [
        await kubectl.start("wait", "ws/one", f"--for={what}", "--timeout=20s")
        for what in ("condition=Ready", "jsonpath={.status.visitors}=3")
    ]
    await asyncio.sleep(0.3)
    status = '{"status":{"visitors":3,"conditions":[{"type":"Ready","status":"True"}]}}'
    await kubectl("patch", "ws", "one", "--subresource=status", "--type=merge", "-p", status)
    for process in waits:
        out, err = await process.communicate()
        assert b"condition met" in out, err
    await kubectl("wait", "ws/one", "--for=condition=Ready", "--timeout=5s")
    late = await kubectl.attempt("wait", "ws/one", "--for=condition=Other", "--timeout=1s")
    assert "timed out waiting for the condition" in late.err


async def test_delete_waits_until_finalizers_are_gone(kubectl: Kubectl) -> None:
    manifest = workshop("one", namespace=kubectl.namespace)
    manifest["metadata"]["finalizers"] = ["example.com/hold"]
    await kubectl("create", "-f", "-", stdin=manifest)
    deletion = await kubectl.start("delete", "ws", "one", "--timeout=20s")
    watcher = await kubectl.start("wait", "ws/one", "--for=delete", "--timeout=20s")
    await asyncio.sleep(0.5)
    assert deletion.returncode is None
    assert watcher.returncode is None
    await kubectl(
        "patch", "ws", "one", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]'
    )
    for process in (deletion, watcher):
        _, err = await process.communicate()
        assert process.returncode == 0, err


async def test_wait_for_deletion_and_creation(kubectl: Kubectl) -> None:
    name = f"saw-{kubectl.namespace}"
    created = await kubectl.start("wait", f"tools/{name}", "--for=create", "--timeout=20s")
    await asyncio.sleep(0.3)
    await kubectl("create", "-f", "-", stdin=tool(name))
    _, err = await created.communicate()
    assert created.returncode == 0, err
    await kubectl("delete", "tool", name)
    await kubectl("wait", f"tools/{name}", "--for=delete", "--timeout=5s")

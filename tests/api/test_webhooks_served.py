"""The webhooks of the running service: over TLS, without a token, with the default queue that Postgres knows."""

import asyncio

from tests.api.running import BASE, Corner
from tests.unit.intake import samples
from tests.webhooks.reviews import QUEUE, job, patched, review


async def test_the_default_queue_of_a_namespace(corner: Corner) -> None:
    subject = job()
    asked = review(subject, namespace=corner.namespace)
    queues = f"{BASE}/namespaces/{corner.namespace}/localqueues"
    async with corner.worker.client("") as server, corner.worker.client() as admin:

        async def answer() -> dict[str, object]:
            given = await server.post("/webhooks/mutate", json=asked)
            assert given.status_code == 200
            return patched(subject, given.json())

        assert await answer() == subject
        local = corner.placed(samples.local_queue(), "default")
        (await admin.post(queues, json=local)).raise_for_status()
        (await admin.get(queues)).raise_for_status()
        after = await answer()
        assert after["metadata"]["labels"] == {QUEUE: "default"}  # type: ignore[index]
        (await admin.delete(f"{queues}/default")).raise_for_status()
        (await admin.get(queues)).raise_for_status()
        assert await answer() == subject


async def test_a_forged_call_changes_nothing(corner: Corner) -> None:
    before = await corner.worker.state()
    async with corner.worker.client("") as server:
        bodies = [review(job("main")), review(job("Bad")), {}]
        calls = [
            server.post(f"/webhooks/{hook}", json=body)
            for body in bodies
            for hook in ("mutate", "validate")
        ]
        answers = await asyncio.gather(*calls)
    assert [answer.status_code for answer in answers] == [200] * 4 + [400] * 2
    assert await corner.worker.state() == before

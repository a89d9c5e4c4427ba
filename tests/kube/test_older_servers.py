"""Can a Job be stopped and started again where the Job controller keeps the startTime (Kubernetes before 1.36)?

There the apiserver refuses any change of the template until ``status.startTime`` has been cleared, which a real control
plane of today no longer shows. The sandbox plays the older rules.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.jobs.adapter import StopInfo
from app.kube import errors
from app.kube.client import KubeClient
from app.kube.resources import JOBS, NAMESPACES
from app.sandbox.cluster import Sandbox
from app.sandbox.settings import SandboxSettings
from tests.kube.contract.cluster import job, suspended
from tests.kube.contract.test_jobs import ADAPTER, Hand, admission

NAMESPACE = "older"


@pytest_asyncio.fixture
async def client() -> AsyncIterator[KubeClient]:
    async with (
        Sandbox(SandboxSettings(minor=33)) as sandbox,
        KubeClient(sandbox.client_config()) as opened,
    ):
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await opened.create(NAMESPACES, None, manifest)
        yield opened


async def test_the_start_time_is_cleared_between_stop_and_restore(client: KubeClient) -> None:
    created = await client.create(JOBS, NAMESPACE, job())
    hand = Hand(client, NAMESPACE)
    for attempt in (1, 2):
        await hand.start(admission(attempt))
        await hand.until_active(2)
        info = StopInfo(attempt=attempt, epoch=1, original=ADAPTER.original(created))
        written = await hand.stop(info)
        assert [patch.subresource for patch in written] == [None, "status", None]
        assert (await hand.read())["spec"] == created["spec"]


async def test_without_that_the_server_refuses_the_template(client: KubeClient) -> None:
    """If this fails, the test above proves nothing."""
    manifest = job()
    manifest["spec"]["suspend"] = False
    await client.create(JOBS, NAMESPACE, manifest)
    await Hand(client, NAMESPACE).until_active(2)
    await client.patch(JOBS, NAMESPACE, "train", {"spec": {"suspend": True}})
    await suspended(client, NAMESPACE)
    change = {"spec": {"template": {"spec": {"nodeSelector": {"pool": "x"}}}}}
    with pytest.raises(errors.KubeInvalid):
        await client.patch(JOBS, NAMESPACE, "train", change)

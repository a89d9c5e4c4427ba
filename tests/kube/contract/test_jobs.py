"""Are the batch Job adapter's writes accepted, in their order, and refused when they should be?"""

import pytest

from app.core.manifests import Manifest
from app.jobs import labels
from app.jobs.adapter import StartInfo, StopInfo
from app.jobs.batch_job import BatchJobAdapter
from app.jobs.patches import Patch
from app.jobs.podsets import PodSetStart
from app.kube import errors
from app.kube.client import KubeClient, Selection
from app.kube.resources import JOBS, PODS
from tests.kube.contract.cluster import eventually, job

ADAPTER = BatchJobAdapter()


def admission(attempt: int = 1, count: int = 2) -> StartInfo:
    entry = PodSetStart(
        name="main",
        count=count,
        node_selector={"pool": "gpu"},
        tolerations=({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},),
        labels={labels.PODSET: "main", labels.CLUSTER_QUEUE_NAME: "cq"},
        annotations={labels.WORKLOAD: "w"},
    )
    return StartInfo(attempt=attempt, epoch=1, pod_sets=(entry,))


class Hand:
    """What the engine's sync does, by hand: read, ask the adapter, write."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def read(self) -> Manifest:
        return await self._client.get(JOBS, self._namespace, "train")

    async def write(self, patch: Patch) -> Manifest:
        return await self._client.patch(
            JOBS,
            self._namespace,
            "train",
            patch.body,
            patch_type=patch.type,
            subresource=patch.subresource,
        )

    async def start(self, info: StartInfo) -> None:
        async def done() -> bool:
            try:
                patch = ADAPTER.start_patch(await self.read(), info)
                await self.write(patch)
            except errors.KubeConflict:
                return False
            return patch.final

        await eventually(done)

    async def stop(self, info: StopInfo) -> list[Patch]:
        written: list[Patch] = []

        async def done() -> bool:
            step = ADAPTER.stop_step(await self.read(), info)
            if step.patch:
                try:
                    await self.write(step.patch)
                except errors.KubeConflict:
                    return False
                written.append(step.patch)
            return step.done

        await eventually(done, within_s=60)
        return written

    async def pods(self) -> list[Manifest]:
        found = await self._client.list(PODS, Selection(namespace=self._namespace))
        return found.items

    async def until_active(self, count: int) -> None:
        async def active() -> bool:
            return ADAPTER.facts(await self.read()).active == count

        await eventually(active)


@pytest.fixture
def hand(client: KubeClient, namespace: str) -> Hand:
    return Hand(client, namespace)


async def test_a_suspended_job_becomes_quiet(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    await client.create(JOBS, namespace, job())

    async def quiet() -> bool:
        return ADAPTER.facts(await hand.read()).quiet

    await eventually(quiet)
    assert await hand.pods() == []


async def test_start_puts_the_admission_into_the_pods(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    await client.create(JOBS, namespace, job())
    await hand.start(admission())
    await hand.until_active(2)
    facts = ADAPTER.facts(await hand.read())
    assert (facts.suspended, facts.attempt, facts.epoch) == (False, 1, 1)
    pods = await hand.pods()
    assert len(pods) == 2
    for pod in pods:
        assert pod["spec"]["nodeSelector"] == {"mine": "yes", "pool": "gpu"}
        assert pod["metadata"]["labels"][labels.CLUSTER_QUEUE_NAME] == "cq"
        assert pod["metadata"]["annotations"][labels.WORKLOAD] == "w"
        assert {item["key"] for item in pod["spec"]["tolerations"]} >= {"mine", "gpu"}
    selected = Selection(
        namespace=namespace, labels=ADAPTER.pod_selector((await hand.read())["metadata"]["uid"])
    )
    assert len((await client.list(PODS, selected)).items) == 2


async def test_the_template_of_a_running_job_is_immutable(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    await client.create(JOBS, namespace, job())
    await hand.start(admission())
    with pytest.raises(errors.KubeInvalid):
        await client.patch(
            JOBS,
            namespace,
            "train",
            {"spec": {"template": {"spec": {"nodeSelector": {"pool": "x"}}}}},
        )


async def test_stop_restores_the_users_job_and_it_can_start_again(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    created = await client.create(JOBS, namespace, job())
    original = ADAPTER.original(created)
    for attempt in (1, 2):
        await hand.start(admission(attempt))
        await hand.until_active(2)
        written = await hand.stop(StopInfo(attempt=attempt, epoch=1, original=original))
        # Since 1.36 the Job controller clears the startTime itself, and it may be faster than we are.
        assert [patch.subresource for patch in written] in ([None, None], [None, "status", None])
        stopped = await hand.read()
        assert stopped["spec"] == created["spec"]
        assert "startTime" not in stopped["status"]
        facts = ADAPTER.facts(stopped)
        assert (facts.quiet, facts.stopping, facts.stopped_attempt) == (True, False, attempt)

        async def no_pods() -> bool:
            return not await hand.pods()

        await eventually(no_pods)


async def test_a_stop_at_once_after_the_start(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    """The controller may not have seen the job run at all."""
    created = await client.create(JOBS, namespace, job())
    await hand.start(admission())
    await hand.stop(StopInfo(attempt=1, epoch=1, original=ADAPTER.original(created)))
    assert (await hand.read())["spec"] == created["spec"]


async def test_partial_admission_and_back(client: KubeClient, namespace: str, hand: Hand) -> None:
    manifest = job(annotations={labels.MIN_PARALLELISM: "1"})
    created = await client.create(JOBS, namespace, manifest)
    await hand.start(admission(count=1))
    await hand.until_active(1)
    await hand.stop(StopInfo(attempt=1, epoch=1, original=ADAPTER.original(created)))
    assert (await hand.read())["spec"] == created["spec"]


async def test_a_delayed_start_cannot_land_after_a_stop(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    created = await client.create(JOBS, namespace, job())

    async def quiet() -> bool:
        return ADAPTER.facts(await hand.read()).quiet

    await eventually(quiet)
    delayed = ADAPTER.start_patch(await hand.read(), admission())
    await hand.stop(StopInfo(attempt=1, epoch=1, original=ADAPTER.original(created)))
    with pytest.raises(errors.KubeConflict):
        await hand.write(delayed)
    assert (await hand.read())["spec"]["suspend"] is True


async def test_a_start_meant_for_a_deleted_job_misses_its_successor(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    await client.create(JOBS, namespace, job())
    patch = ADAPTER.start_patch(await hand.read(), admission())
    await client.delete(JOBS, namespace, "train")

    async def created_anew() -> bool:
        try:
            await client.create(JOBS, namespace, job())
        except errors.KubeAlreadyExists:
            return False
        return True

    await eventually(created_anew)
    with pytest.raises(errors.KubeConflict):
        await hand.write(patch)
    assert (await hand.read())["spec"]["suspend"] is True


async def test_a_job_that_ran_without_us_can_be_stopped_and_then_started(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    manifest = job()
    manifest["spec"]["suspend"] = False
    created = await client.create(JOBS, namespace, manifest)
    await hand.until_active(2)
    await hand.stop(StopInfo(attempt=0, epoch=1, original=None))
    assert (await hand.read())["spec"] == {**created["spec"], "suspend": True}
    await hand.start(admission())
    await hand.until_active(2)


async def test_a_job_suspended_by_its_user_after_running_can_be_started(
    client: KubeClient, namespace: str, hand: Hand
) -> None:
    """Its startTime is still set, and the apiserver would refuse any change of the template."""
    manifest = job()
    manifest["spec"]["suspend"] = False
    await client.create(JOBS, namespace, manifest)
    await hand.until_active(2)
    await client.patch(JOBS, namespace, "train", {"spec": {"suspend": True}})

    async def quiet() -> bool:
        return ADAPTER.facts(await hand.read()).quiet

    await eventually(quiet)
    await hand.start(admission())
    await hand.until_active(2)

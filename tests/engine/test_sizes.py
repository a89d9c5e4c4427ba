"""Jobs that start smaller than they asked for, and jobs that need less and less."""

from app.core.policy import Policy
from app.core.resources import FlavorResource
from app.store.session import Database
from tests.engine.stage import Stage
from tests.engine.test_life_of_a_workload import stage

CPU = FlavorResource("default", "cpu")


def used(on: Stage) -> int:
    """Thousandths of cpu in use."""
    node = on.loop.following.image.tree.queue("cq")
    assert node is not None
    return node.used(CPU)


async def test_a_job_that_may_start_smaller_does_and_is_whole_again_when_it_stopped(
    database: Database,
) -> None:
    on = await stage(database, Policy(), cpu=9)
    minimum = {"kueue.x-k8s.io/job-min-parallelism": "8"}
    on.jobs.submit("j", parallelism=10, completions=20, annotations=minimum)
    for _ in range(3):
        await on.settle()
        assert on.jobs.running() == ["j"]
        assert on.jobs.live["j"]["spec"]["parallelism"] == 9
        assert used(on) == 9000

        await on.edit_workload("j", spec={"active": False})
        await on.settle()
        assert on.jobs.running() == []
        assert on.jobs.live["j"]["spec"]["parallelism"] == 10
        assert used(on) == 0
        await on.edit_workload("j", spec={"active": True})


async def test_a_job_that_cannot_start_small_enough_waits(database: Database) -> None:
    on = await stage(database, Policy(), cpu=7)
    on.jobs.submit(
        "j", parallelism=10, completions=20, annotations={"kueue.x-k8s.io/job-min-parallelism": "8"}
    )
    await on.settle()
    assert on.jobs.running() == []
    assert await on.shown("j", "QuotaReserved") == ("False", "ExceedsMaxQuota")


async def test_pods_that_are_done_give_their_quota_to_others(database: Database) -> None:
    on = await stage(database, Policy(), cpu=5)
    on.jobs.submit("first", parallelism=4, completions=6)
    on.jobs.submit("second", parallelism=3, completions=3)
    await on.settle()
    assert on.jobs.running() == ["first"]

    on.jobs.report("first", succeeded=3)  # three to go: one place is free for good
    await on.settle()
    assert (await on.workload("first"))["status"]["reclaimablePods"] == [
        {"name": "main", "count": 1}
    ]
    assert used(on) == 3000
    assert on.jobs.running() == ["first"]

    on.jobs.report("first", succeeded=4)
    await on.settle()
    assert on.jobs.running() == ["first", "second"]
    assert used(on) == 5000

    on.jobs.report("first", succeeded=3)  # a late report takes nothing back
    await on.settle()
    assert (await on.workload("first"))["status"]["reclaimablePods"] == [
        {"name": "main", "count": 2}
    ]
    assert used(on) == 5000


async def test_a_job_that_is_stopped_half_way_asks_for_what_is_left(database: Database) -> None:
    on = await stage(database, Policy(), cpu=4)
    on.jobs.submit("j", parallelism=4, completions=4)
    await on.settle()
    on.jobs.report("j", succeeded=3)
    await on.settle()
    await on.edit_workload("j", spec={"active": False})
    await on.settle()
    assert used(on) == 0

    await on.edit_workload("j", spec={"active": True})
    await on.settle()
    assert on.jobs.running() == ["j"]
    assert used(on) == 1000


async def test_reclaiming_can_be_switched_off(database: Database) -> None:
    on = await stage(database, Policy(reclaimable_pods=False), cpu=4)
    on.jobs.submit("j", parallelism=4, completions=4)
    await on.settle()
    on.jobs.report("j", succeeded=3)
    await on.settle()
    assert used(on) == 4000

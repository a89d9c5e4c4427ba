"""Who is first among those that wait: the priority class of the job, as it is now."""

from tests.e2e.manifests import job, priority_class
from tests.e2e.waiting import eventually
from tests.e2e.world import World


def test_higher_class_goes_first(world: World) -> None:
    prepare(world)
    start_one_by_one(world, "high", "middle", "low")


def test_changed_value_reorders_the_line(world: World) -> None:
    prepare(world)
    world.front.kubectl.apply(priority_class(world.mine("low"), 1000))
    eventually(lambda: priorities(world)["low"] == 1000)
    start_one_by_one(world, "low", "high", "middle")


def test_class_made_later_counts_from_then_on(world: World) -> None:
    world.open_queue("1")
    world.submit(job("blocker", "main", runs_s="forever"))
    world.until_running("blocker")
    world.submit(job("first", "main"))
    world.submit(job("second", "main", priority=world.mine("later")))
    world.until_waiting("first", "second")
    assert priorities(world)["second"] == 0
    world.front.kubectl.apply(priority_class(world.mine("later"), 10))
    eventually(lambda: priorities(world)["second"] == 10)
    start_one_by_one(world, "second", "first")


def test_waiting_job_gets_another_class(world: World) -> None:
    prepare(world)
    world.label("low", {"kueue.x-k8s.io/priority-class": world.mine("high")})
    eventually(lambda: priorities(world)["low"] == 100)
    start_one_by_one(world, "low", "high", "middle")  # of equals the older one is first


def prepare(world: World) -> None:
    """A full queue, and three jobs behind it, the least important first."""
    world.open_queue("1")
    values = {"low": 1, "middle": 10, "high": 100}
    world.front.kubectl.apply(
        *(priority_class(world.mine(name), value) for name, value in values.items())
    )
    world.submit(job("blocker", "main", runs_s="forever"))
    world.until_running("blocker")
    for name in values:
        world.submit(job(name, "main", priority=world.mine(name)))
    world.until_waiting(*values)
    assert {name: priorities(world)[name] for name in values} == values


def priorities(world: World) -> dict[str, int]:
    return {
        one["metadata"]["ownerReferences"][0]["name"]: one["spec"].get("priority", 0)
        for one in world.workloads()
    }


def start_one_by_one(world: World, *jobs: str) -> None:
    """End the blocker, and see the ledger name the jobs in this order."""
    world.end_pods("blocker")
    world.until_complete(*jobs)
    names = {
        one["metadata"]["name"]: one["metadata"]["ownerReferences"][0]["name"]
        for one in world.workloads()
    }
    spans = world.records.spans(world.mine("main"))
    assert [names[span["name"]] for span in spans] == ["blocker", *jobs]

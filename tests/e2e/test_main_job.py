"""The service's one purpose: twenty jobs wait their turn, borrow, run where they were sent, and end."""

from tests.cluster.admin import Object, has_condition
from tests.e2e.crowd import SMALL, TEAMS, Crowd
from tests.e2e.waiting import eventually
from tests.e2e.world import World


def test_twenty_jobs_of_two_teams(world: World) -> None:
    crowd = Crowd(world)
    crowd.set_quota()
    with crowd.watched() as watchman:
        crowd.submit_first()
        check_borrowing(world)
        check_places(world, crowd.first)
        crowd.submit_rest()
        dropped, edited, *others = crowd.rest
        assert edited == SMALL
        world.until_waiting(dropped, edited)
        gone = world.workload(dropped)
        assert gone is not None
        world.delete(dropped)
        edit(world, edited)
        crowd.end_pods(crowd.first)
        crowd.until_complete(*crowd.first, edited, *others)
    assert watchman.most["red"] == 8
    crowd.check([*crowd.first, edited, *others])

    check_edited(world, edited)
    name = gone["metadata"]["name"]
    assert world.front.find("workloads", name, world.namespace) is None
    assert name not in {span["name"] for span in all_spans(world)}  # it never held anything


def check_borrowing(world: World) -> None:
    """Alpha holds all of the red cpus, half of them beta's."""
    queue = world.mine("alpha")

    def told() -> Object | None:
        found = world.front.find("clusterqueues", queue)
        usage = (found or {}).get("status", {}).get("flavorsUsage") or []
        red = [one for one in usage if one["name"] == world.mine("red")]
        cpu = red[0]["resources"][0] if red else {}
        return cpu if (cpu.get("total"), cpu.get("borrowed")) == ("8", "4") else None

    eventually(told)
    spans = world.records.spans(queue)
    red = [span for span in spans if span["flavor"] == world.mine("red")]
    assert sum(span["amount"] for span in red if not span["ended_at"]) == 8000
    assert sum(span["borrowed"] for span in red if not span["ended_at"]) == 4000


def check_places(world: World, jobs: dict[str, str]) -> None:
    """Running pods carry the node labels and tolerations of their flavor, and are where those lead."""
    for name, pool in jobs.items():
        for pod in eventually(lambda name=name: all_bound(world.pods(name))):
            assert pod["spec"]["nodeSelector"] == {"pool": pool}
            assert pod["spec"]["nodeName"].startswith(f"{pool}-")
            tolerated = {one.get("key") for one in pod["spec"]["tolerations"]}
            assert ("reserved" in tolerated) == (pool == "blue")


def all_bound(pods: list[Object]) -> list[Object]:
    return pods if pods and all("nodeName" in pod["spec"] for pod in pods) else []


def edit(world: World, name: str) -> None:
    """One pod more, and a wish about the nodes, while it waits."""
    assert world.job(name)["spec"]["parallelism"] == 1
    world.patch(
        name,
        {
            "spec": {
                "parallelism": 2,
                "template": {
                    "spec": {
                        "nodeSelector": {"disk": "ssd"},
                        "tolerations": [{"key": "mine", "operator": "Exists"}],
                    }
                },
            }
        },
    )


def check_edited(world: World, name: str) -> None:
    """It ran with what it asked for last, and was charged for that."""
    pods = world.pods(name)
    assert len(pods) == 2
    for pod in pods:
        assert pod["spec"]["nodeSelector"]["disk"] == "ssd"
        assert pod["spec"]["nodeSelector"]["pool"] in ("red", "blue")
        assert "mine" in {one.get("key") for one in pod["spec"]["tolerations"]}
        assert pod["spec"]["nodeName"].endswith(("red-1", "blue-1"))  # those with such a disk
    workload = world.workload(name)
    assert workload is not None
    assert has_condition(workload, "Finished")
    charged = [span for span in all_spans(world) if span["name"] == workload["metadata"]["name"]]
    assert [span["amount"] for span in charged] == [200]


def all_spans(world: World) -> list[Object]:
    return world.records.spans(*(world.mine(team) for team in TEAMS))

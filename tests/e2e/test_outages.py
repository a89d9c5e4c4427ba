"""What everything rests on goes away and comes back: the service says so in its log, waits, and goes on by itself."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.admin import Object
from tests.cluster.controlplane import ControlPlane
from tests.e2e.crowd import Crowd
from tests.e2e.installation import Installation
from tests.e2e.manifests import job
from tests.e2e.waiting import eventually, to_its_end
from tests.e2e.world import World
from tests.postgres import Postgres


@pytest.fixture
def same_processes(service: Installation) -> Iterator[None]:
    """It recovers without being started again."""
    before = {name: service.role(name).pid for name in ("engine", "api")}
    yield
    assert {name: service.role(name).pid for name in ("engine", "api")} == before


@pytest.fixture
def news(service: Installation) -> "News":
    return News(service)


class News:
    """What the log says since the test began."""

    def __init__(self, service: Installation) -> None:
        self._service, self._from = service, len(service.log)

    @property
    def text(self) -> str:
        return self._service.log[self._from :]

    def until(self, words: str, within_s: float = 20) -> None:
        eventually(lambda: words in self.text, within_s)


@pytest.mark.usefixtures("same_processes")
@pytest.mark.parametrize("lasts_past_the_lease", [False, True], ids=["short", "long"])
def test_postgres_goes_away(
    world: World, own_postgres: Postgres, news: News, *, lasts_past_the_lease: bool
) -> None:
    crowd = Crowd(world)
    crowd.set_quota()
    with crowd.watched():
        crowd.submit_first()
        own_postgres.crash()
        try:
            crowd.submit_rest()  # at the door nobody needs a database
            crowd.end_pods(crowd.first)
            world.until_complete(*crowd.first)
            news.until("Postgres does not answer")
            refusal = world.front.kubectl.refused(
                "patch", "clusterqueue", world.mine("alpha"), "--type=merge", "-p", hold("Hold")
            )
            assert "Postgres does not answer" in refusal
            if lasts_past_the_lease:
                news.until("leading.lost")
        finally:
            to_its_end(own_postgres.start())
        crowd.until_complete(*crowd.first, *crowd.rest, within_s=60)
    crowd.check([*crowd.first, *crowd.rest])
    queue = world.front.find("clusterqueues", world.mine("alpha")) or {}
    assert queue["spec"]["stopPolicy"] == "None"  # what was refused was not done


@pytest.mark.usefixtures("same_processes")
def test_all_sessions_are_thrown_out_again_and_again(world: World) -> None:
    crowd = Crowd(world)
    crowd.set_quota()
    with crowd.watched():
        crowd.submit_first()
        crowd.submit_rest()
        crowd.end_pods(crowd.first)
        for _ in range(10):
            world.records.rows(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'sluice%'"
            )
        crowd.until_complete(*crowd.first, *crowd.rest, within_s=60)
    crowd.check([*crowd.first, *crowd.rest])


@pytest.mark.usefixtures("same_processes")
def test_api_server_goes_away(world: World, cluster: ControlPlane, news: News) -> None:
    queue = world.open_queue("2")
    world.submit(job("runs", "main", runs_s="forever"))
    world.until_running("runs")
    kubectl = world.front.kubectl
    kubectl("patch", "clusterqueue", queue, "--type=merge", "-p", hold("Hold"))
    world.submit(job("waits", "main"))
    world.until_waiting("waits")
    (waiting,) = [one for one in world.workloads() if "QuotaReserved" not in true_of(one)]

    cluster.stop_apiserver()
    try:
        # Decided meanwhile, to be carried out later
        kubectl("patch", "clusterqueue", queue, "--type=merge", "-p", hold("None"))
        name = waiting["metadata"]["name"]
        eventually(lambda: world.records.attempt_is_open(queue, name, attempt=1))
        news.until("sync.deferred")
        news.until("reflector interrupted")
    finally:
        cluster.start_apiserver()
    world.until_complete("waits", within_s=40)
    world.until_finished("waits")
    assert world.marks("waits")["attempt"] == "1"
    assert not world.is_suspended("runs")
    world.end_pods("runs")
    world.until_finished("runs", within_s=30)
    world.until_free(queue)


@pytest.mark.usefixtures("same_processes")
def test_api_server_freezes(world: World, cluster: ControlPlane) -> None:
    queue = world.open_queue("2")
    kubectl = world.front.kubectl
    kubectl("patch", "clusterqueue", queue, "--type=merge", "-p", hold("Hold"))
    world.submit(job("waits", "main"))
    world.until_waiting("waits")
    cluster.pause_apiserver()
    try:
        kubectl("patch", "clusterqueue", queue, "--type=merge", "-p", hold("None"))
        eventually(lambda: [span for span in world.records.spans(queue) if not span["ended_at"]])
    finally:
        cluster.resume_apiserver()
    world.until_complete("waits", within_s=40)
    world.until_finished("waits", within_s=30)


def hold(policy: str) -> str:
    return json.dumps({"spec": {"stopPolicy": policy}})


def true_of(workload: Object) -> set[str]:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return {one["type"] for one in conditions if one["status"] == "True"}

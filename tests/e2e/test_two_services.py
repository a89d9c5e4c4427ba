"""Two replicas over one database: one leads, the other takes over, and a leader that slept too long changes nothing."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import psutil
import pytest

from tests.e2e.crowd import Crowd
from tests.e2e.front import Front
from tests.e2e.installation import Installation
from tests.e2e.manifests import job
from tests.e2e.waiting import eventually
from tests.e2e.world import World

LEADER = "select holder, epoch from lease where expires_at > clock_timestamp()"

#: Beside each change: which session made it.
WITNESS = (
    "create table if not exists witness (number bigint, port int)",
    """create or replace function witness() returns trigger language plpgsql as $$
       begin
         insert into witness values (new.number, inet_client_port());
         return new;
       end $$""",
    "create or replace trigger witness after insert on changes for each row execute function witness()",
)


@pytest.fixture(scope="module")
def second(
    installation: Installation, front: Front, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("second")
    made = Installation(folder, installation.kubeconfig, installation.database_url)
    made.launch()
    try:
        eventually((made.folder / "serving.json").exists, 40)
        yield made
        made.stop()
        assert "Traceback" not in made.log
    finally:
        if made.is_running():
            made.kill()


def ports(process: psutil.Process) -> set[int]:
    return {one.laddr.port for one in process.net_connections(kind="tcp")}


def test_leader_is_frozen_in_the_middle(
    world: World, service: Installation, second: Installation
) -> None:
    for statement in WITNESS:
        world.records.rows(statement)
    crowd = Crowd(world)
    crowd.set_quota()
    engine = service.role("engine")
    (before,) = world.records.rows(LEADER)
    assert before["holder"].endswith(f"-{engine.pid}")
    assert "leading" not in second.log.replace("leading.lost", "")

    with crowd.watched() as watchman:
        crowd.submit_first()
        crowd.submit_rest()
        crowd.until_rest_waits()
        crowd.end_pods(crowd.first)
        eventually(lambda: not all(world.is_suspended(name) for name in crowd.rest))
        engine.suspend()
        try:
            stale = ports(engine)
            other = eventually(lambda: led_by(world, second), 20)
            taken_at = world.records.value("select coalesce(max(number), 0) from changes")
            crowd.until_complete(*crowd.first, *crowd.rest, within_s=60)
        finally:
            engine.resume()
        eventually(lambda: "leading.lost" in service.log or "hung past" in service.log)
    assert other > before["epoch"]
    assert set(watchman.epochs.values()) <= {before["epoch"], other}
    crowd.check([*crowd.first, *crowd.rest])
    late = world.records.rows("select number, port from witness where number > $1", taken_at)
    assert late
    assert not [row for row in late if row["port"] in stale]


def test_replica_takes_over_at_once_from_one_that_is_stopped(
    world: World, service: Installation, second: Installation
) -> None:
    world.open_queue("1")
    pair = (service, second)
    leader = eventually(lambda: next((one for one in pair if led_by(world, one)), None), 20)
    (other,) = (one for one in pair if one is not leader)
    other.role("engine")
    leader.stop()
    eventually(lambda: led_by(world, other), 5)
    file = other.folder / "replica.kubeconfig"
    other.run("kubeconfig", "-o", str(file))
    theirs = Front(file)
    try:
        eventually(theirs.is_ready)
        theirs.kubectl("get", "clusterqueue", world.mine("main"))
    finally:
        theirs.close()
    eventually(lambda: registered_port(world) == other.port)
    world.submit(job("train", "main"))
    world.until_complete("train")
    world.until_free(world.mine("main"))


def registered_port(world: World) -> int:
    """Where the cluster finds the webhooks now."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/sluice"
    url = world.cluster.get(path)["webhooks"][0]["clientConfig"]["url"]
    return urlsplit(url).port or 0


def led_by(world: World, one: Installation) -> int | None:
    """The epoch, once it leads."""
    found = world.records.rows(LEADER)
    pid = one.role("engine").pid
    epochs = [row["epoch"] for row in found if row["holder"].endswith(f"-{pid}")]
    return epochs[0] if epochs else None

"""kill -9 in the middle of the main job: nothing is lost, nothing runs twice, and never is more used than there is."""

import random
import time

import pytest

from tests.e2e.crowd import Crowd
from tests.e2e.installation import Installation
from tests.e2e.manifests import job
from tests.e2e.waiting import eventually
from tests.e2e.world import World


def test_whole_service_is_killed(world: World, service: Installation) -> None:
    crowd = Crowd(world)
    crowd.set_quota()
    with crowd.watched():
        crowd.submit_first()
        crowd.submit_rest()
        crowd.until_rest_waits()
        crowd.end_first()
        eventually(lambda: not all(world.is_suspended(name) for name in crowd.rest))
        service.kill()
        service.launch()
        killed_at = time.monotonic()
        eventually(lambda: service.log.rpartition("serving")[2].count("leading"), 15)
        assert time.monotonic() - killed_at < 15  # the lease of the dead, and a little
        crowd.until_complete(*crowd.first, *crowd.rest, within_s=60)
    crowd.check([*crowd.first, *crowd.rest])


def test_jobs_end_and_vanish_while_nobody_looks(world: World, service: Installation) -> None:
    world.open_queue("2")
    world.submit(job("ends", "main", runs_s="forever"))
    world.submit(job("vanishes", "main", runs_s="forever"))
    world.until_running("ends", "vanishes")
    world.submit(job("waits", "main", pods=2))
    world.submit(job("dropped", "main"))
    world.until_waiting("waits", "dropped")

    service.kill()
    world.end_pods("ends")
    world.delete("vanishes")
    world.delete("dropped")
    lapse(world)
    service.launch()

    world.until_complete("waits", within_s=40)
    world.until_finished("ends")
    left = {one["metadata"]["ownerReferences"][0]["name"] for one in world.workloads()}
    assert left == {"ends", "waits"}
    world.until_free(world.mine("main"))


@pytest.mark.parametrize("seed", [1, 2])
def test_engine_is_killed_again_and_again(world: World, service: Installation, seed: int) -> None:
    dice = random.Random(seed)
    crowd = Crowd(world)
    crowd.set_quota()
    with crowd.watched():
        crowd.submit_first()
        crowd.submit_rest()
        crowd.end_first()
        for _ in range(3):
            time.sleep(dice.uniform(0, 0.6))
            service.role("engine").kill()
            lapse(world)
            until_led(world)
        crowd.until_complete(*crowd.first, *crowd.rest, within_s=60)
    crowd.check([*crowd.first, *crowd.rest])


def lapse(world: World) -> None:
    """Let the lease of the dead run out now; waiting for it is tried above."""
    world.records.rows("update lease set expires_at = clock_timestamp() - interval '1 second'")


def until_led(world: World) -> None:
    eventually(lambda: world.records.value("select expires_at > clock_timestamp() from lease"))

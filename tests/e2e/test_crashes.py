"""kill -9 in the middle of the main job: nothing is lost, nothing runs twice, and never is more used than there is."""

import random
import time

from tests.e2e.crowd import Crowd
from tests.e2e.installation import Installation
from tests.e2e.waiting import eventually
from tests.e2e.world import World


def test_whole_service_is_killed(world: World, service: Installation) -> None:
    """While it is away some jobs end, one that runs is deleted, and so is one that waits."""
    crowd = Crowd(world)
    crowd.set_quota()
    dropped, *rest = crowd.rest
    vanishing, *first = crowd.first
    with crowd.watched():
        crowd.submit_first()
        crowd.submit_rest()
        crowd.until_rest_waits()
        crowd.end_pods(first[:2])
        eventually(lambda: not all(world.is_suspended(name) for name in rest))
        service.kill()
        crowd.end_pods(first[2:])
        world.delete(vanishing)
        world.delete(dropped)
        before = len(service.log)
        service.launch()
        eventually(
            lambda: "leading" in service.log[before:], 15
        )  # the lease of the dead, and a little
        crowd.until_complete(*first, *rest, within_s=60)
    crowd.check([*first, *rest])
    left = {one["metadata"]["ownerReferences"][0]["name"] for one in world.workloads()}
    assert left == {*first, *rest}


def test_engine_is_killed_again_and_again(world: World, service: Installation) -> None:
    dice = random.Random(1)
    crowd = Crowd(world)
    crowd.set_quota()
    with crowd.watched():
        crowd.submit_first()
        crowd.submit_rest()
        crowd.end_pods(crowd.first)
        for _ in range(2):
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

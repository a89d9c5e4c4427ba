"""What the watch showed is out of date at times: it may save a read, and must not mislead anybody."""

from typing import Any

from app.core.manifests import Manifest
from app.core.policy import DEFAULT
from app.store.session import Database
from tests.builders import cluster_queue, flavor, local_queue
from tests.engine.cluster import Jobs
from tests.engine.stage import Stage

QUOTA = {"default": {"cpu": "8", "memory": "100Gi"}}


class Watched(Jobs):
    """Remembers every state that a write has left."""

    def __init__(self) -> None:
        super().__init__()
        self.past: list[Manifest] = []

    async def patch(self, *arguments: Any, **options: Any) -> Manifest:
        self.past.append(await super().patch(*arguments, **options))
        return self.past[-1]


async def stage(database: Database) -> tuple[Stage, Watched]:
    made = await Stage.open(database, DEFAULT)
    made.jobs = watched = Watched()
    made.stepper.client = watched  # type: ignore[assignment]
    door, nodes = local_queue("main", "cq"), flavor()
    door["metadata"]["namespace"] = "team-a"
    nodes["spec"] = {**(nodes.get("spec") or {}), "nodeLabels": {"pool": "red"}}
    await made.put(nodes, cluster_queue("cq", QUOTA), door)
    return made, watched


def selector(job: Manifest) -> object:
    return job["spec"]["template"]["spec"].get("nodeSelector")


async def stop(on: Stage, policy: str) -> None:
    def change(old: Manifest) -> Manifest:
        return {**old, "spec": {**old["spec"], "stopPolicy": policy}}

    await on.change("ClusterQueue", None, "cq", change)


async def test_half_stopped_job_seen_late_is_not_taken_for_its_owners(database: Database) -> None:
    on, jobs = await stage(database)
    jobs.submit("train")
    own = selector(jobs.live["train"])
    await on.settle()
    assert selector(jobs.live["train"]) == {**(own or {}), "pool": "red"}  # type: ignore[dict-item]

    await stop(on, "HoldAndDrain")
    await on.settle()
    assert selector(jobs.live["train"]) == own
    (late, *_) = [job for job in jobs.past if job["spec"]["suspend"] and selector(job) != own]
    on.stepper.sightings.note([late])
    await stop(on, "None")
    await on.settle()
    assert jobs.running() == ["train"]

    await stop(on, "HoldAndDrain")
    await on.settle()
    assert jobs.running() == []
    assert selector(jobs.live["train"]) == own


async def test_smaller_job_seen_late_does_not_stop_the_one_that_runs(database: Database) -> None:
    """Its owner made it bigger while it waited; an older sight of it comes up as it is to be started."""
    on, jobs = await stage(database)
    await stop(on, "Hold")
    late = jobs.submit("train", parallelism=1, completions=4)
    await on.settle()
    metadata = {
        **late["metadata"],
        "resourceVersion": str(int(late["metadata"]["resourceVersion"]) + 50),
    }
    jobs.live["train"] = {**late, "metadata": metadata, "spec": {**late["spec"], "parallelism": 2}}
    await on.settle()
    on.stepper.sightings.note([late])
    await stop(on, "None")
    await on.settle()
    assert jobs.running() == ["train"]
    row = await on.row("train")
    assert row is not None
    assert row.tracking.attempt == 1
    assert row.manifest["spec"]["podSets"][0]["count"] == 2

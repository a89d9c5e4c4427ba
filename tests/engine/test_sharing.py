"""Usage-based sharing and blocked admission through the engine: what is written, read back and survives a restart."""

from datetime import timedelta

from app.core.manifests import Manifest
from app.core.policy import AdmissionFairness, PodsReady, Policy
from app.core.quantity import parse
from app.store import changes
from app.store.session import Database
from tests.builders import local_queue
from tests.engine.stage import Stage
from tests.engine.test_life_of_a_workload import stage

SHARING = Policy(
    admission_fairness=AdmissionFairness(
        half_life=timedelta(seconds=60), sampling=timedelta(seconds=10), weights=(("memory", 0),)
    )
)
QUEUE = "kueue.x-k8s.io/queue-name"
MODE = {"admissionMode": "UsageBasedAdmissionFairSharing"}


async def books(on: Stage, name: str) -> Manifest:
    async with on.database.read() as tx:
        manifest = await tx.get("LocalQueue", "team-a", name)
    assert manifest is not None
    found: Manifest = manifest["status"]["fairSharing"]
    return found


def consumed(of: Manifest) -> float:
    amounts = of["admissionFairSharingStatus"]["consumedResources"]
    return parse(amounts.get("cpu", 0)).nanos / 10**9


async def test_whoever_used_less_is_served_first_also_after_a_restart(database: Database) -> None:
    on = await stage(database, SHARING, cpu=3, admissionScope=MODE)
    other = local_queue("other", "cq")
    other["metadata"]["namespace"] = "team-a"
    await on.put(other)
    on.jobs.submit("a1")
    await on.settle()
    assert on.jobs.running() == ["a1"]
    await on.wait(1)
    owed = consumed(await books(on, "main"))
    assert 3 * (1 - 0.5 ** (10 / 60)) <= owed < 0.5  # the penalty, at once
    assert consumed(await books(on, "other")) == 0
    await on.wait(60)
    assert 1.4 < consumed(await books(on, "main")) < 2
    assert (await books(on, "main"))["weightedShare"] == 2

    await on.restart(SHARING)
    on.jobs.submit("a2")
    await on.settle()
    await on.wait(1)
    on.jobs.submit("b1", labels={QUEUE: "other"})
    await on.settle()
    on.jobs.report("a1", succeeded=3, conditions=[{"type": "Complete", "status": "True"}])
    await on.settle()
    assert on.jobs.running() == ["a1", "b1"]

    before = consumed(await books(on, "main"))
    on.jobs.report("b1", succeeded=3, conditions=[{"type": "Complete", "status": "True"}])
    await on.wait(120)
    assert "a2" in on.jobs.running()
    assert before / 5 < consumed(await books(on, "main")) < 3.5


async def test_books_are_written_when_they_are_due_and_not_more_often(database: Database) -> None:
    async def head() -> int:
        async with database.read() as tx:
            return await changes.head(tx)

    on = await stage(database, SHARING, cpu=3, admissionScope=MODE)
    on.jobs.submit("a1")
    await on.settle()
    await on.wait(30)
    before = await head()
    await on.wait(5)
    assert await head() == before
    await on.wait(5)
    assert await head() == before + 1


async def test_the_next_job_starts_when_the_first_is_ready(database: Database) -> None:
    on = await stage(database, Policy(pods_ready=PodsReady(block_admission=True)), cpu=9)
    on.jobs.submit("first")
    on.jobs.submit("second")
    on.jobs.submit("third")
    await on.settle()
    assert on.jobs.running() == ["first"]
    assert await on.shown("second", "QuotaReserved") == ("False", "WaitingForPodsReady")

    on.jobs.report("first", ready=3)
    await on.settle()
    assert on.jobs.running() == ["first", "second"]
    on.jobs.report("second", succeeded=3, conditions=[{"type": "Complete", "status": "True"}])
    await on.settle()
    assert on.jobs.running() == ["first", "second", "third"]

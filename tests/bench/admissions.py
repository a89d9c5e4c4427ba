"""Jobs on a real API server: how long until each may start, how many a second, and what does that cost?

`burst`: quota for all, Jobs made as fast as the API server takes them. The controller manager and the scheduler are
frozen meanwhile, so nothing runs: only admission is measured, and the machine's cores belong to the API server and the
service. What the API server alone can do is measured first, with the same client: the same Jobs, made and unsuspended.

`churn`: quota for a quarter of them, every Job runs a pod for a second on simulated nodes, until all are done. The
whole control plane works on the same cores here, so utilisation is bounded by it.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import asyncpg
import uvloop

from tests.bench.crowd import Crowd, crowd
from tests.bench.meters import Meters
from tests.bench.report import Report, quantile
from tests.bench.stand import NAMESPACE, Stand, stand
from tests.bench.wishes import Wishes
from tests.cluster.admin import Object
from tests.cluster.nodes import create_nodes, node
from tests.e2e.manifests import FOREVER, job

T = TypeVar("T")

QUEUES = 10
JOBS = 1000
RUN_S = 1.0
PATIENCE_S = 600.0
FROZEN = ("kube-controller-manager", "kube-scheduler")
MACHINE = {"cpu": "256", "memory": "1Ti", "pods": "250"}
ALONE = "alone"


def burst(wishes: Wishes) -> Report:
    with stand() as made:
        return _burst(made, wishes.sized(JOBS), wishes)


def churn(wishes: Wishes) -> Report:
    with stand() as made:
        return _churn(made, wishes.sized(JOBS), wishes)


def _burst(made: Stand, count: int, wishes: Wishes) -> Report:
    report = Report("admissions/burst")
    queues = made.open_queues(QUEUES, "10000")
    made.cluster.admin.create_namespace(ALONE)
    for name in FROZEN:
        made.cluster.servers[name].pause()
    jobs = _jobs(count, queues, FOREVER)
    report.add("jobs", count)
    alone_s = _run(_alone(made, jobs))
    report.add("api server alone", count / alone_s, "jobs/s", "made and unsuspended by hand")
    meters = made.meters()
    with made.spied(wishes.spy and wishes.spy / "burst"), meters.running():
        seen = _run(_start(made, jobs))
    _tell_latency(report, seen)
    rate = count / (max(seen.started.values()) - min(seen.born.values()))
    report.add("of the api server's rate", rate * alone_s / count, "", "1 = as fast as by hand")
    _tell_cost(report, meters, count)
    report.add("all gone after", _delete(made), "s")
    for name in FROZEN:
        made.cluster.servers[name].resume()
    return report


def _churn(made: Stand, count: int, wishes: Wishes) -> Report:
    report = Report("admissions/churn")
    each = max(1, count // 4 // QUEUES)
    queues = made.open_queues(QUEUES, str(each))
    create_nodes(made.cluster.admin, [node(f"node-{n}", MACHINE) for n in range(4)])
    report.add("jobs", count)
    report.add("at a time", each * QUEUES)
    meters = made.meters()
    with made.spied(wishes.spy and wishes.spy / "churn"), meters.running():
        seen = _run(_finish(made, _jobs(count, queues, str(RUN_S))))
    _tell_latency(report, seen)
    took_s = max(seen.ended.values()) - min(seen.born.values())
    report.add("all done after", took_s, "s")
    report.add("running", count * RUN_S / (took_s * each * QUEUES), "", "of the quota, on average")
    charged_s = _run(_charged(made.postgres.url))
    report.add("charged", charged_s / (took_s * each * QUEUES), "", "of the quota, on average")
    _tell_cost(report, meters, count)
    report.add("all gone after", _delete(made), "s")
    return report


def _jobs(count: int, queues: Sequence[str], runs_s: str) -> list[Object]:
    """Their owners do not suspend them: the webhook does."""
    return [
        job(f"job-{number}", queues[number % len(queues)], runs_s=runs_s, suspend=None)
        for number in range(count)
    ]


async def _alone(made: Stand, jobs: Sequence[Object]) -> float:
    """Seconds for the same jobs without the service: they name no queue, so it leaves them alone."""
    bare = [
        {
            **one,
            "metadata": {"name": one["metadata"]["name"]},
            "spec": {**one["spec"], "suspend": True},
        }
        for one in jobs
    ]
    async with crowd(made.cluster.kubeconfig, ALONE) as people:
        begun = time.monotonic()
        await people.create(bare)
        await people.unsuspend(list(people.born))
        await people.until_started(len(jobs), PATIENCE_S)
        return max(people.started.values()) - begun


async def _start(made: Stand, jobs: Sequence[Object]) -> Crowd:
    async with crowd(made.cluster.kubeconfig, NAMESPACE) as people:
        await people.create(jobs)
        await people.until_started(len(jobs), PATIENCE_S)
        return people


async def _finish(made: Stand, jobs: Sequence[Object]) -> Crowd:
    async with crowd(made.cluster.kubeconfig, NAMESPACE) as people:
        await people.create(jobs)
        await people.until_ended(len(jobs), PATIENCE_S)
        return people


async def _charged(url: str) -> float:
    """Cpu seconds that the ledger has, of spans that have ended or until now."""
    connection = await asyncpg.connect(url)
    try:
        found = await connection.fetchval(
            "select sum(amount / 1000.0 * extract(epoch from coalesce(ended_at, now()) - started_at))"
            " from admissions"
        )
        return float(found)
    finally:
        await connection.close()


def _tell_latency(report: Report, seen: Crowd) -> None:
    first = min(seen.born.values())
    latencies = [seen.started[name] - born for name, born in seen.born.items()]
    report.add("created", len(seen.born) / (max(seen.born.values()) - first), "jobs/s")
    report.add("admitted", len(seen.started) / (max(seen.started.values()) - first), "jobs/s")
    for share in (0.5, 0.95, 1.0):
        name = "max" if share == 1.0 else f"p{share * 100:.0f}"
        report.add(f"latency {name}", quantile(latencies, share), "s")


def _tell_cost(report: Report, meters: Meters, count: int) -> None:
    for name, meter in meters.groups.items():
        cost = meter.cpu_s * 1000 / count
        memory = f"peak {meter.peak_bytes / 2**20:,.0f} MiB"
        report.add(f"cpu {name}", cost, "ms/job", memory)


def _delete(made: Stand) -> float:
    """Seconds until nothing of the jobs is left in the cluster and in Sluice."""
    begun = time.monotonic()
    for namespace in (NAMESPACE, ALONE):
        made.cluster.admin.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs")
    while made.workloads():
        time.sleep(0.2)
        if time.monotonic() - begun > PATIENCE_S:
            raise TimeoutError("workloads of deleted jobs are still there")
    return time.monotonic() - begun


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)

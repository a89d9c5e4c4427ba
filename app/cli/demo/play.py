"""Plays a script on a stage, shows it, and says whether all went well.

Ends with status 0 only if every Job has finished and the ledger shows that no admission ever took more than there was.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.live import Live

from app import clock
from app.cli.demo import script, stage, view
from app.cli.demo.script import Script
from app.cli.demo.stage import Stage
from app.cli.demo.summary import summarize
from app.cli.demo.view import Picture
from app.core.manifests import Manifest, parse
from app.core.metadata import moment
from app.errors import Misconfigured, Unavailable
from app.kube.client import KubeClient, Selection
from app.kube.resources import JOBS, Resource
from app.store import ledger

LOOK_S = 0.4
SPANS = 100_000

WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads")
CLUSTER_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "clusterqueues", namespaced=False)
COHORTS = Resource("kueue.x-k8s.io", "v1beta2", "cohorts", namespaced=False)

Cluster = Callable[[Path, Script], AbstractAsyncContextManager[Path]]
"""Makes a cluster with the script's nodes, its files in a folder; gives its kubeconfig."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    files: Sequence[Path] = ()
    keep: bool = False
    speed: float = 1.0
    timeout_s: float = 300.0


def run(wishes: Wishes, cluster: Cluster | None = None) -> int:
    """Play to the end; returns the exit status. Without `cluster`, on a simulated one."""

    @asynccontextmanager
    async def simulated(folder: Path, of: Script) -> AsyncIterator[Path]:
        async with stage.sandbox(folder, list(of.nodes), wishes.speed) as kubeconfig:
            yield kubeconfig

    folder = Path(tempfile.mkdtemp(prefix="sluice-demo-"))
    try:
        return asyncio.run(_run(wishes, cluster or simulated, folder))
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(wishes: Wishes, cluster: Cluster, folder: Path) -> int:
    console = Console()
    played = script.of_files(wishes.files) if wishes.files else script.own()
    if not (played.quota or played.jobs):
        raise Misconfigured("there is nothing to play: the files hold neither quota nor Jobs")
    console.print(f"starting Postgres, a cluster of {len(played.nodes)} nodes and the service ...")
    async with (
        cluster(folder, played) as kubeconfig,
        stage.set_up(kubeconfig, folder) as set_up,
        KubeClient(set_up.sluice) as sluice,
        KubeClient(set_up.cluster) as jobs,
    ):
        watching = _Watching(set_up, sluice, jobs, console)
        await script.prepare(played, sluice, jobs)
        submitting = asyncio.create_task(script.submit(played, jobs))
        try:
            all_finished = await watching.until_finished(
                submitting, len(played.jobs), wishes.timeout_s
            )
        finally:
            submitting.cancel()
        within_quota = await watching.close()
        if wishes.keep:
            await _keep(set_up, console)
    return 0 if all_finished and within_quota else 1


@dataclass(slots=True)
class _Watching:
    stage: Stage
    sluice: KubeClient
    cluster: KubeClient
    console: Console
    _states: dict[str, str] = field(default_factory=dict)

    async def until_finished(
        self, submitting: asyncio.Task[None], expected: int, timeout_s: float
    ) -> bool:
        """Show what happens until every Job has finished; False when time ran out."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal else None
        with live or nullcontext():
            while True:
                self.stage.check()
                seen, finished = await self._look()
                self._show(seen, loop.time() - began, live)
                if submitting.done():
                    submitting.result()
                    if finished >= expected and seen.is_settled:
                        return True
                if loop.time() - began > timeout_s:
                    self.console.print(f"[red]not finished after {timeout_s:.0f}s")
                    return False
                await asyncio.sleep(LOOK_S)

    async def close(self) -> bool:
        """Print the summary; whether quota was never exceeded."""
        seen, _ = await self._look()
        workloads = (await self.sluice.list(WORKLOADS)).items
        nouns = [
            parse(one)
            for resource in (CLUSTER_QUEUES, COHORTS)
            for one in (await self.sluice.list(resource)).items
        ]
        async with self.stage.database.read() as tx:
            spans = await ledger.spans(tx, limit=SPANS)
        queued_at = {one["metadata"]["uid"]: _created_at(one) for one in workloads}
        summary = summarize(spans, queued_at, nouns, clock.now())
        self.console.print(view.closing(summary, seen))
        return not summary.exceeded

    async def _look(self) -> tuple[Picture, int]:
        """What Sluice says, and how many Jobs the cluster says have ended."""
        try:
            workloads = (await self.sluice.list(WORKLOADS)).items
            queues = (await self.sluice.list(CLUSTER_QUEUES)).items
            jobs = (await self.cluster.list(JOBS, Selection())).items
        except Unavailable:  # the service may still be loading
            return Picture(rows=(), queues=()), 0
        return view.picture(workloads, queues), sum(_ended(job) for job in jobs)

    def _show(self, seen: Picture, lasted_s: float, live: Live | None) -> None:
        if live is not None:
            height = self.console.size.height
            live.update(view.draw(seen, lasted_s, clock.now(), height), refresh=True)
            return
        for line in view.told(self._states, seen, lasted_s):
            self.console.print(line, highlight=False, soft_wrap=True)
        self._states = {row.name: row.state for row in seen.rows}


async def _keep(set_up: Stage, console: Console) -> None:
    console.print("\nstill up, until Ctrl-C:")
    console.print(
        f"  kubectl --kubeconfig {set_up.cluster_kubeconfig} get jobs,pods -A", soft_wrap=True
    )
    console.print(
        f"  kubectl --kubeconfig {set_up.sluice_kubeconfig} get cq,lq,wl -A", soft_wrap=True
    )
    await set_up.service.wait()
    set_up.check()


def _ended(job: Manifest) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions
    )


def _created_at(manifest: Manifest) -> datetime:
    return moment(manifest["metadata"]["creationTimestamp"])

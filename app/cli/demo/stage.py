"""What a demo stands on: a cluster, a fresh Postgres and the service in front of it; all gone when it ends.

The cluster is whatever kubeconfig the caller brings: `sandbox` makes the simulated one, in this process. The service
is the real command in a process of its own, its log in the folder.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from app import clock
from app.cli import access, supervised
from app.cli.serve import Serving
from app.core.manifests import Manifest
from app.errors import Misconfigured, Unavailable
from app.kube import kubeconfig
from app.kube.config import ClusterConfig
from app.sandbox.cluster import Sandbox
from app.sandbox.postgres import EmbeddedPostgres
from app.sandbox.settings import SandboxSettings
from app.settings import Settings
from app.store import migrate, tokens
from app.store.audit import Actor
from app.store.session import Database

START_S = 60.0
STOP_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    database: Database
    service: asyncio.subprocess.Process
    log: Path
    cluster_kubeconfig: Path
    sluice_kubeconfig: Path

    @property
    def cluster(self) -> ClusterConfig:
        return kubeconfig.load(self.cluster_kubeconfig)

    @property
    def sluice(self) -> ClusterConfig:
        return kubeconfig.load(self.sluice_kubeconfig)

    def check(self) -> None:
        """Raises Misconfigured when the service has ended by itself."""
        if self.service.returncode is not None:
            raise Misconfigured(f"the service ended; its log says:\n{_tail(self.log)}")


@asynccontextmanager
async def sandbox(folder: Path, nodes: list[Manifest], speed: float) -> AsyncIterator[Path]:
    """The simulated cluster; gives its kubeconfig."""
    async with Sandbox(SandboxSettings(speed=speed, manifests=nodes)) as cluster:
        file = folder / "cluster.kubeconfig"
        cluster.write_kubeconfig(file)
        yield file


@asynccontextmanager
async def set_up(cluster_kubeconfig: Path, folder: Path) -> AsyncIterator[Stage]:
    """A fresh database and the service, for the cluster of that kubeconfig."""
    postgres = EmbeddedPostgres(folder / "postgres", durable=False)
    await asyncio.to_thread(postgres.start)
    try:
        await migrate.upgrade(postgres.url)
        database = await Database.open(postgres.url, application_name="sluice-demo")
        try:
            async with _service(postgres.url, cluster_kubeconfig, folder) as service:
                yield Stage(
                    database=database,
                    service=service,
                    log=folder / "serve.log",
                    cluster_kubeconfig=cluster_kubeconfig,
                    sluice_kubeconfig=await _way_in(database, service, folder),
                )
        finally:
            await database.close()
    finally:
        await asyncio.to_thread(postgres.stop)


@asynccontextmanager
async def _service(
    url: str, cluster: Path, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = supervised.environment(
        DATABASE_URL=url,
        KUBECONFIG=str(cluster),
        SLUICE_DATA_DIR=str(folder),
        SLUICE_API_PORT="0",
    )
    with (folder / "serve.log").open("wb") as log:
        service = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "app", "serve", env=environment, stdout=log, stderr=log
        )
    try:
        yield service
    finally:
        if service.returncode is None:
            service.terminate()
        try:
            await asyncio.wait_for(service.wait(), STOP_S)
        except TimeoutError:
            service.kill()
            await service.wait()


async def _way_in(database: Database, service: asyncio.subprocess.Process, folder: Path) -> Path:
    """Wait until the service announces itself, and write a kubeconfig for its API."""
    serving = await _announced(service, folder)
    async with database.write(Actor("system", "demo")) as tx:
        _, text = await tokens.create(tx, name="demo", role="admin", now=clock.now())
    document = access.content(serving.url, serving.ca.read_bytes(), text)
    file = folder / "sluice.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


async def _announced(service: asyncio.subprocess.Process, folder: Path) -> Serving:
    settings = Settings.model_construct(data_dir=folder)
    deadline = asyncio.get_running_loop().time() + START_S
    while service.returncode is None and asyncio.get_running_loop().time() < deadline:
        try:
            return Serving.find(settings)
        except Misconfigured:
            await asyncio.sleep(0.1)
    raise Unavailable(f"the service did not start; its log says:\n{_tail(folder / 'serve.log')}")


def _tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])

"""What is measured: `sluice serve` as a person runs it, a durable Postgres of its own, and a real control plane.

The embedded Postgres is started here and not by `serve`, so that its cost is told apart; it is the same one, with
fsync. Queues are made over Sluice's own API with kubectl.
"""

import asyncio
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.sandbox.postgres import EmbeddedPostgres
from app.store import migrate
from tests.bench.meters import Meter, Meters
from tests.cluster.admin import Object, has_condition
from tests.cluster.controlplane import ControlPlane
from tests.e2e.front import Front
from tests.e2e.installation import Installation
from tests.e2e.manifests import cluster_queue, flavor, local_queue
from tests.e2e.waiting import eventually

NAMESPACE = "bench"
ROLES = ("engine", "api")
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@dataclass(slots=True)
class Stand:
    cluster: ControlPlane
    service: Installation
    postgres: EmbeddedPostgres
    front: Front
    _postmaster: int = field(default=0)

    def open_queues(self, count: int, cpus: str) -> list[str]:
        """So many ClusterQueues with so many cpus each, and a LocalQueue of the same name for each."""
        names = [f"queue-{number}" for number in range(count)]
        self.front.kubectl.apply(
            flavor("any"),
            *(cluster_queue(name, {"any": cpus}) for name in names),
            *(local_queue(NAMESPACE, name, name) for name in names),
        )
        eventually(lambda: all(map(self._serves, names)))
        return names

    def meters(self) -> Meters:
        groups = {role: Meter(self.service.role(role).pid) for role in ROLES}
        groups["postgres"] = Meter(self._postmaster, with_children=True)
        groups |= {name: Meter(server.pid) for name, server in self.cluster.servers.items()}
        return Meters(groups)

    def workloads(self) -> int:
        """Workloads that are still there, whatever their state."""
        return len(self.front.items("workloads", NAMESPACE))

    @contextmanager
    def spied(self, folder: Path | None) -> Iterator[None]:
        """Record where the service's processes spend their time, if that was wished for."""
        if folder is None:
            yield
            return
        folder.mkdir(parents=True, exist_ok=True)
        spies = [self._spy(folder / f"{role}.txt", self.service.role(role).pid) for role in ROLES]
        try:
            yield
        finally:
            for spy in spies:
                spy.send_signal(signal.SIGINT)
                spy.wait()

    def _spy(self, file: Path, pid: int) -> subprocess.Popen[bytes]:
        program = shutil.which("py-spy")
        if program is None:
            raise FileNotFoundError("py-spy is not on the PATH: pip install py-spy")
        how = ["record", "--format", "raw", "--rate", "200", "--output", str(file)]
        return subprocess.Popen([program, *how, "--pid", str(pid)], stdout=subprocess.DEVNULL)

    def _serves(self, name: str) -> bool:
        found: Object | None = self.front.find("clusterqueues", name)
        return found is not None and has_condition(found, "Active")


@contextmanager
def stand() -> Iterator[Stand]:
    """Everything up and answering; all of it goes at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
        folder.chmod(0o755)
        cluster = stack.enter_context(ControlPlane())
        postgres = stack.enter_context(EmbeddedPostgres(folder / "postgres"))
        asyncio.run(migrate.upgrade(postgres.url))
        service = Installation(folder / "sluice", cluster.kubeconfig, postgres.url)
        cluster.admin.create_namespace(NAMESPACE)
        service.launch()
        stack.callback(_end, service)
        front = stack.enter_context(_way_in(service))
        eventually(lambda: cluster.admin.get(WEBHOOKS)["items"])
        pid = int((folder / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
        yield Stand(cluster, service, postgres, front, pid)


def _end(service: Installation) -> None:
    """Its log is only worth reading when something went wrong."""
    service.stop()
    for line in service.log.splitlines():
        if "[warning" in line or "[error" in line:
            print(line, file=sys.stderr)


@contextmanager
def _way_in(service: Installation) -> Iterator[Front]:
    eventually((service.folder / "serving.json").exists, 40)
    file = service.folder / "sluice.kubeconfig"
    service.run("kubeconfig", "-o", str(file))
    front = Front(file)
    try:
        yield front
    finally:
        front.close()

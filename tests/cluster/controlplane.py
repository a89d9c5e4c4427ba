"""A real control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok for nodes.

    with ControlPlane() as cluster:
        create_nodes(cluster.admin, [node("a")])
        ...

The cluster lives on loopback ports and in one work directory, holds nothing when it starts, and forgets everything when
it stops. What tests see of it is what they would see of any other cluster: real validation, defaulting, webhooks, RBAC,
garbage collection, scheduling. Only the machines are made up, see ``nodes`` and ``stages.yaml``.

Any server can be lost on purpose; the API server, which tests do that to most, can be stopped, frozen and brought back
under the same address. All servers die with the process that started them, however that ends.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import arguments
from tests.cluster.admin import Admin
from tests.cluster.arguments import Layout, Ports, ServerFiles
from tests.cluster.build import ensure_assets
from tests.cluster.certs import Authority, KeyPair, create_service_account_keys
from tests.cluster.kubeconfig import write_kubeconfig
from tests.cluster.processes import Keeper, Server, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

_START_TIMEOUT_S = 120.0
_POLL_S = 0.05
_ATTEMPTS = 3
_PORT_TAKEN = "address already in use"
#: What a server may need of our environment; the rest (proxies, KUBECONFIG, GOGC ...) would make runs differ.
_PASSED_ON = ("PATH", "TMPDIR", "TZ")


class ControlPlaneError(RuntimeError):
    """A server did not start or has ended; the message ends with the last lines of its log."""


class _PortTakenError(ControlPlaneError):
    """Somebody else took a port between our choosing it and the server's listening on it."""


class ControlPlane:
    """One cluster. Start it once; after ``stop`` make a new one."""

    def __init__(
        self,
        work_dir: Path | None = None,
        assets: Path | None = None,
        apiserver_flags: Sequence[str] = (),
    ) -> None:
        """Prepare a cluster.

        Without ``work_dir`` a temporary folder is used, which ``stop`` removes; a folder of the caller's is kept, logs
        and all. ``assets`` holds the programs, which are otherwise built if need be. ``apiserver_flags`` are added to
        ours.
        """
        self._temporary = work_dir is None
        self.work_dir = work_dir or Path(tempfile.mkdtemp(prefix="sluice-cluster-"))
        self._assets = assets
        self._apiserver_flags = tuple(apiserver_flags)
        self._started = False
        self._servers: dict[str, Server] = {}
        self._admin: Admin | None = None
        home = self.work_dir / "home"
        home.mkdir(parents=True, exist_ok=True)
        # kwok would also read the settings in the home directory of whoever runs the tests.
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
            "HOME": str(home)
        }
        self._keeper = Keeper(self.log_dir, environment)

    def start(self) -> Self:
        """Start all servers and return when pods could be created, scheduled and run.

        If that fails nothing is left running, and the work directory is left for a look at the logs.
        """
        if self._started:
            raise ControlPlaneError("a control plane is started once")
        self._started = True
        try:
            self._make_identities()
            self._start_on_free_ports(self._assets or ensure_assets())
        except BaseException:
            self._keeper.close()
            raise
        return self

    def stop(self) -> None:
        """Stop all servers at once and forget what they knew."""
        if self._admin is not None:
            self._admin.close()
        self._keeper.close()
        if self._temporary:
            shutil.rmtree(self.work_dir, ignore_errors=True)

    def __enter__(self) -> Self:
        """Start the cluster."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the cluster."""
        self.stop()

    @property
    def server(self) -> str:
        """The URL of the API server, the same for as long as the cluster lives."""
        return self._layout.server

    @property
    def ca_path(self) -> Path:
        """The certificate that the API server's own is signed by."""
        return self._authority.certificate

    @property
    def admin(self) -> Admin:
        """A client that may do everything."""
        if self._admin is None:
            raise ControlPlaneError("the control plane has not been started")
        return self._admin

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that may do everything."""
        return self.work_dir / "kubeconfigs" / "admin.yaml"

    @property
    def log_dir(self) -> Path:
        """The folder with one log for each server, named after its program."""
        return self.work_dir / "logs"

    @property
    def servers(self) -> dict[str, Server]:
        """The servers by name, for faults that need more than the methods below."""
        return self._servers

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for a user who may do what RBAC says about that name and those groups."""
        path = self.work_dir / "kubeconfigs" / f"{user.replace(':', '-').replace('/', '-')}.yaml"
        return write_kubeconfig(
            path, self.server, self.ca_path, self._authority.issue_client(user, groups)
        )

    def serving_certificate(
        self, name: str, hosts: Sequence[str] = ("localhost", "127.0.0.1")
    ) -> KeyPair:
        """Sign a certificate for a webhook or another server of the test; ``ca_path`` is what vouches for it."""
        return self._authority.issue_server(name, hosts)

    def stop_apiserver(self) -> None:
        """Take the API server away. Nothing that it has confirmed is lost: etcd has it.

        It is killed. Asked to end, it would stop listening at once but wait a minute for its open watches.
        """
        self._servers["kube-apiserver"].kill()

    def start_apiserver(self) -> None:
        """Bring the API server back on the same port, and wait until it is ready."""
        command = arguments.apiserver(self._layout, self._files, self._apiserver_flags)
        self._start_server(command, self.admin.is_ready)

    def restart_apiserver(self) -> None:
        """Stop the API server and bring it back; every open watch breaks."""
        self.stop_apiserver()
        self.start_apiserver()

    def pause_apiserver(self) -> None:
        """Freeze the API server: connections stay open, and nothing is answered."""
        self._servers["kube-apiserver"].pause()

    def resume_apiserver(self) -> None:
        """Let a frozen API server go on."""
        self._servers["kube-apiserver"].resume()

    def check(self) -> None:
        """Raise if a server has ended, which explains most time-outs better than the time-out does."""
        for server in self._servers.values():
            _require_running(server)

    def memory_bytes(self) -> dict[str, int]:
        """Return the resident memory of each server."""
        return {name: server.memory_bytes() for name, server in self._servers.items()}

    def _make_identities(self) -> None:
        folder = self.work_dir / "pki"
        self._authority = Authority(folder, "sluice-test-ca")
        front_proxy = Authority(folder, "front-proxy-ca")
        self._admin_identity = self._authority.issue_client("admin", ["system:masters"])
        self._files = ServerFiles(
            ca=self._authority.certificate,
            serving=self._authority.issue_server("kube-apiserver"),
            service_accounts=create_service_account_keys(folder),
            front_proxy_ca=front_proxy.certificate,
            front_proxy_client=front_proxy.issue_client("front-proxy-client"),
        )

    def _start_on_free_ports(self, assets: Path) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            self._layout = Layout(assets, self.work_dir, Ports(*free_ports(3)))
            try:
                self._start_all()
            except _PortTakenError:
                self.admin.close()
                self._keeper.kill_all()
                shutil.rmtree(self._layout.etcd_dir, ignore_errors=True)
                # The next attempt must not find this one's complaint in the log.
                for log in self.log_dir.glob("*.log"):
                    log.unlink()
                if attempt == _ATTEMPTS:
                    raise
            else:
                return

    def _start_all(self) -> None:
        layout = self._layout
        self._servers.clear()
        self._admin = Admin(layout.server, self.ca_path, self._admin_identity)
        write_kubeconfig(self.kubeconfig, layout.server, self.ca_path, self._admin_identity)
        self._start_server(arguments.etcd(layout), lambda: _is_listening(layout.ports.etcd))
        self.start_apiserver()
        for command in (
            arguments.controller_manager(
                layout, self._files, self.kubeconfig_for("system:kube-controller-manager")
            ),
            arguments.scheduler(layout, self.kubeconfig_for("system:kube-scheduler")),
            arguments.kwok(layout, self.kubeconfig),
        ):
            self._start_server(command)
        self._await(self._servers["kube-controller-manager"], self._is_namespace_populated)

    def _start_server(
        self, command: Sequence[str], is_ready: Callable[[], bool] | None = None
    ) -> None:
        server = self._keeper.start(command)
        self._servers[server.name] = server
        if is_ready is not None:
            self._await(server, is_ready)

    def _await(self, server: Server, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not is_ready():
            for each in self._servers.values():
                _require_running(each)
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    f"{server.name} was not ready after {_START_TIMEOUT_S:g} s; "
                    f"its log ends with:\n{server.tail()}"
                )
            time.sleep(_POLL_S)

    def _is_namespace_populated(self) -> bool:
        """The controller manager serves no health check here, but this is a trace of its being at work."""
        accounts = self.admin.get("/api/v1/namespaces/default/serviceaccounts")["items"]
        return any(account["metadata"]["name"] == "default" for account in accounts)


def _require_running(server: Server) -> None:
    if server.is_running():
        return
    tail = server.tail()
    error = _PortTakenError if _PORT_TAKEN in tail else ControlPlaneError
    raise error(f"{server.name} has ended; its log ends with:\n{tail}")


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True

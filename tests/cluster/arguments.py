"""With which arguments does each server run, and why with those?

Pure functions from the layout of one cluster to command lines. What they have in common: everything listens on the
loopback interface only, nothing elects a leader because there is one of each, and nothing has to survive a power cut.
Where a default suits a cluster of machines but makes a test wait, the reason for another value is beside it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cluster.certs import KeyPair

_STAGES = Path(__file__).with_name("stages.yaml")

#: Requests a second that the controllers may send; their defaults would make them the slowest part of any test.
_CLIENT_QPS = 400
_CLIENT_BURST = 800


@dataclass(frozen=True)
class Ports:
    """The ports of one cluster, all on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    apiserver: int


@dataclass(frozen=True)
class Layout:
    """Where the programs, the files and the ports of one cluster are."""

    assets: Path
    work_dir: Path
    ports: Ports

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self.ports.apiserver}"

    @property
    def etcd_dir(self) -> Path:
        """The folder that holds all that the cluster remembers."""
        return self.work_dir / "etcd"


@dataclass(frozen=True)
class ServerFiles:
    """The certificates and keys that the API server itself needs."""

    ca: Path
    serving: KeyPair
    service_accounts: KeyPair
    front_proxy_ca: Path
    front_proxy_client: KeyPair


def etcd(layout: Layout) -> list[str]:
    """Return the command line of etcd."""
    client = f"http://127.0.0.1:{layout.ports.etcd}"
    peer = f"http://127.0.0.1:{layout.ports.etcd_peer}"
    return [
        str(layout.assets / "etcd"),
        f"--data-dir={layout.etcd_dir}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(layout: Layout, files: ServerFiles, extra: Sequence[str] = ()) -> list[str]:
    """Return the command line of kube-apiserver; a flag in ``extra`` wins over one of ours."""
    return [
        str(layout.assets / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{layout.ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports.apiserver}",
        # Given only so that the server does not search the machine for an address of its own: there may be none.
        "--advertise-address=192.0.2.1",
        "--external-hostname=localhost",
        # The "kubernetes" service cannot point at a loopback address, and the server would insist on it.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        f"--client-ca-file={files.ca}",
        f"--tls-cert-file={files.serving.certificate}",
        f"--tls-private-key-file={files.serving.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.service_accounts.certificate}",
        f"--service-account-signing-key-file={files.service_accounts.key}",
        # These let an APIService be served by a process of the test.
        f"--requestheader-client-ca-file={files.front_proxy_ca}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={files.front_proxy_client.certificate}",
        f"--proxy-client-key-file={files.front_proxy_client.key}",
        # A test that floods the server means to measure something else than its queues.
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=1600",
        "--max-mutating-requests-inflight=800",
        # Events are most of what a busy test writes, and nobody reads them twice.
        "--event-ttl=10m",
        "--profiling=false",
        *extra,
    ]


def controller_manager(layout: Layout, files: ServerFiles, kubeconfig: Path) -> list[str]:
    """Return the command line of kube-controller-manager."""
    return [
        str(layout.assets / "kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        # As in any real cluster: each controller has its own identity and no more rights than that one was given.
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={files.service_accounts.key}",
        f"--root-ca-file={files.ca}",
        # It makes this folder, by default in a place that belongs to the machine.
        f"--flex-volume-plugin-dir={layout.work_dir / 'flex-volumes'}",
        f"--kube-api-qps={_CLIENT_QPS}",
        f"--kube-api-burst={_CLIENT_BURST}",
        "--concurrent-job-syncs=20",
        # Nodes send no heartbeats here. They say that they are not ready, or else they are.
        "--node-monitor-grace-period=24h",
        "--node-monitor-period=1s",
        "--profiling=false",
    ]


def scheduler(layout: Layout, kubeconfig: Path) -> list[str]:
    """Return the command line of kube-scheduler, having written the file that it is configured with."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(kubeconfig),
            "qps": _CLIENT_QPS,
            "burst": _CLIENT_BURST,
        },
        # A pod that did not fit is looked at again within two seconds instead of ten.
        "podMaxBackoffSeconds": 2,
        "enableProfiling": False,
    }
    path = layout.work_dir / "scheduler.json"
    path.write_text(json.dumps(config, indent=2) + "\n")
    return [str(layout.assets / "kube-scheduler"), f"--config={path}", "--secure-port=0"]


def kwok(layout: Layout, kubeconfig: Path) -> list[str]:
    """Return the command line of kwok."""
    return [
        str(layout.assets / "kwok"),
        f"--kubeconfig={kubeconfig}",
        f"--config={_STAGES}",
        "--manage-all-nodes",
        # No leases: a node is managed from the moment it is seen, and a large cluster costs nothing while it idles.
        "--node-lease-duration-seconds=0",
    ]

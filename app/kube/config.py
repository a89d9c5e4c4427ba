"""Where is a cluster, how is its certificate checked, and as whom do we speak to it?

A `ClusterConfig` is complete: nothing is read from the environment later, and a proxy named there is ignored. Secrets
do not show in its `repr`. TLS is verified unless the one who builds it says `insecure` in so many words. How it is
read from a kubeconfig is `kubeconfig`'s question; in a pod, `in_cluster` reads the service account's mounted files.
"""

import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final

from app.errors import Misconfigured
from app.kube.credentials import Credentials, FixedCredentials, TokenFile

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def _user_agent() -> str:
    try:
        return f"sluice/{metadata.version('sluice')}"
    except metadata.PackageNotFoundError:
        return "sluice/unreleased"


USER_AGENT: Final = _user_agent()
"""Read once: building a config from an upload must open no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How hard one cluster may be worked. `qps` and `burst` count requests, a watch being one."""

    qps: float = 200.0
    burst: int = 400
    connections: int = 64
    timeout_s: float = 30.0
    connect_timeout_s: float = 10.0
    body_bytes: int = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    server: str
    name: str = ""
    namespace: str = "default"
    credentials: Credentials = field(default_factory=FixedCredentials, repr=False)
    client_certificate: bytes | None = field(default=None, repr=False)
    client_key: bytes | None = field(default=None, repr=False)
    certificate_authority: bytes | None = field(default=None, repr=False)
    server_name: str | None = None
    insecure: bool = False
    limits: Limits = Limits()
    user_agent: str = USER_AGENT

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for plain HTTP, which only a sandbox on loopback speaks."""
        if not self.server.startswith("https://"):
            return None
        context = ssl.create_default_context()
        try:
            if self.certificate_authority is not None:
                context = ssl.create_default_context(cadata=self.certificate_authority.decode())
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if self.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.client_certificate and self.client_key:
                _load_chain(context, self.client_certificate, self.client_key)
        except (ssl.SSLError, ValueError) as error:
            raise Misconfigured(
                f"A certificate or key of cluster {self.name or self.server} cannot be used: {error}."
            ) from error
        return context


def _load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Give OpenSSL the client's pair. It takes only files: one of ours alone, gone before we return."""
    with tempfile.NamedTemporaryFile(prefix="sluice-") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)


def in_cluster(
    environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT
) -> ClusterConfig:
    host = environment.get("KUBERNETES_SERVICE_HOST")
    port = environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise Misconfigured(
            "Not running in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set."
        )
    token = folder / "token"
    if not token.is_file():
        raise Misconfigured(f"The pod has no service account token at {token}.")
    address = f"[{host}]" if ":" in host else host
    return ClusterConfig(
        server=f"https://{address}:{port}",
        name="in-cluster",
        namespace=_text(folder / "namespace") or "default",
        credentials=TokenFile(token),
        certificate_authority=_bytes(folder / "ca.crt"),
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}.") from error


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace").strip() if path.is_file() else ""

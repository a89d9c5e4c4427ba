"""A Kubernetes-API-compatible cluster in this process.

``async with Sandbox(settings) as sandbox`` gives a cluster that speaks HTTPS on loopback at `sandbox.url` (or plain
HTTP), with `sandbox.token` as the bearer token of its one user. It has nodes, pods and Jobs that live and end,
admission webhooks, garbage collection and faults on demand, and it is gone without a trace when the block ends.

From the outside in: faults, kubectl's dialects, the request's particulars, the API server, wrong watches, admission,
the two faces of events, and memory. Nothing in here schedules, queues or decides quotas.
"""

import asyncio
import base64
import hmac
import secrets
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from starlette.requests import Request
from starlette.types import ASGIApp

from app import clock
from app.apiserver.application import build_app
from app.apiserver.context import Attributes, Server
from app.apiserver.kinds import Kind
from app.apiserver.memory import MemoryStorage
from app.apiserver.paths import Target
from app.apiserver.registry import Registry
from app.apiserver.storage import Storage, User
from app.core.manifests import Manifest
from app.errors import BadRequest, Unauthorized
from app.kube.config import ClusterConfig
from app.kube.kubeconfig import parse as parse_kubeconfig
from app.sandbox.admission.builtin import PERMANENT_NAMESPACES, BuiltinAdmission
from app.sandbox.admission.call import WebhookClient
from app.sandbox.admission.chain import AdmittingStorage
from app.sandbox.admission.webhooks import Webhooks
from app.sandbox.certificates import new_identity
from app.sandbox.controllers import Controllers
from app.sandbox.dialects.layer import DialectLayer
from app.sandbox.faults.control import ControlLayer
from app.sandbox.faults.http import FaultLayer
from app.sandbox.faults.plan import Faults
from app.sandbox.faults.watches import FaultyStorage
from app.sandbox.http_server import HttpServer
from app.sandbox.kinds.catalogue import catalogue
from app.sandbox.kinds.event_faces import EventFaces
from app.sandbox.kinds.nodes import NAMESPACE, NODE
from app.sandbox.kinds.policies import MUTATING_WEBHOOKS, PRIORITY_CLASS, VALIDATING_WEBHOOKS
from app.sandbox.nodes.make import NodeShape, node_manifests
from app.sandbox.requests import RequestReader
from app.sandbox.settings import SandboxSettings
from app.sandbox.writer import Writer

_ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
_CONTROLLERS = User(
    "system:serviceaccount:kube-system:sandbox",
    ("system:serviceaccounts", "system:authenticated"),
)
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


class Sandbox:
    def __init__(self, settings: SandboxSettings | None = None) -> None:
        self.settings = settings or SandboxSettings()
        self.faults = Faults()
        self.token = self.settings.token
        self.kinds = catalogue(self.settings.rules, clock.now, self.settings.further_kinds)
        self._memory = MemoryStorage(progress_s=min(5.0, self.settings.bookmark_every_s))
        stored = EventFaces(self._memory)
        self._webhook_client = WebhookClient(self.settings.services)
        self.storage = AdmittingStorage(
            stored,
            builtin=BuiltinAdmission(stored, namespaces=NAMESPACE, priority_classes=PRIORITY_CLASS),
            webhooks=Webhooks(
                stored,
                configurations={"mutating": MUTATING_WEBHOOKS, "validating": VALIDATING_WEBHOOKS},
                namespaces=NAMESPACE,
                client=self._webhook_client,
                new_uid=_new_uid,
            ),
            clock=clock.now,
        )
        hosts = list(dict.fromkeys([self.settings.host, "127.0.0.1", "localhost"]))
        self._identity = new_identity(hosts, clock.now()) if self.settings.tls else None
        self._stopping = asyncio.Event()
        self._http = HttpServer(self._app())
        self.writer = Writer(
            storage=self.storage,
            user=_CONTROLLERS,
            clock=clock.now,
            new_uid=_new_uid,
            new_suffix=_new_suffix,
        )
        self._controllers = Controllers(self.writer, stored, self.kinds, self.settings.character)

    @property
    def url(self) -> str:
        scheme = "http" if self._identity is None else "https"
        return f"{scheme}://{self.settings.host}:{self._http.port}"

    @property
    def certificate_authority(self) -> bytes | None:
        """PEM; None if the cluster speaks plain HTTP."""
        return None if self._identity is None else self._identity.authority

    def kubeconfig(self) -> dict[str, Any]:
        """Return what kubectl and clients need, as the content of a kubeconfig file."""
        cluster = {"server": self.url}
        if self.certificate_authority is not None:
            authority = base64.b64encode(self.certificate_authority).decode()
            cluster["certificate-authority-data"] = authority
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "admin"}}],
            "current-context": "sandbox",
        }

    def client_config(self) -> ClusterConfig:
        return parse_kubeconfig(self.kubeconfig())

    def write_kubeconfig(self, path: Path) -> None:
        """Write it readable by its owner only: it holds the token."""
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(self.kubeconfig(), sort_keys=False))

    async def add_nodes(
        self,
        count: int,
        labels: Mapping[str, str] | None = None,
        capacity: Mapping[str, Any] | None = None,
        *,
        prefix: str = "node",
        taints: tuple[Mapping[str, str], ...] = (),
    ) -> list[Manifest]:
        shape = NodeShape(
            count=count,
            prefix=prefix,
            labels=labels or {},
            capacity=capacity or {},
            taints=taints,
        )
        taken = (await self.storage.list(NODE, None)).items
        first = sum(node["metadata"]["name"].startswith(f"{prefix}-") for node in taken)
        return [await self._create_node(node) for node in node_manifests(shape, first)]

    async def create(self, manifest: Manifest) -> Manifest:
        """Create an object of any served kind, admission included, without going through HTTP."""
        kind = self._kind_of(manifest)
        if kind is NODE:
            return await self._create_node(manifest)
        if kind.namespaced:
            metadata = {"namespace": "default", **manifest["metadata"]}
            manifest = {**manifest, "metadata": metadata}
        return await self.writer.create(kind, manifest)

    def compact(self) -> None:
        """Forget the log, as etcd does now and then: watches that are not up to date get 410."""
        self._memory.compact()

    async def __aenter__(self) -> Self:
        self._controllers.start()
        for name in PERMANENT_NAMESPACES:
            await self.create(_namespace(name))
        for name, value in _SYSTEM_PRIORITIES.items():
            await self.create(_priority_class(name, value))
        for shape in self.settings.nodes:
            for node in node_manifests(shape):
                await self._create_node(node)
        for manifest in self.settings.manifests:
            await self.create(manifest)
        tls = None if self._identity is None else self._identity.context()
        await self._http.open(self.settings.host, self.settings.port, tls)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self.faults.clear()
        await self._http.close()
        await self._controllers.stop()
        await self._webhook_client.close()

    def _app(self) -> ASGIApp:
        storage: Storage = FaultyStorage(self.storage, self.faults)
        server = Server(
            registry=Registry(self.kinds.all),
            storage=storage,
            authenticate=self._authenticate,
            authorize=_allow,
            stopping=self._stopping,
            git_version=f"v1.{self.settings.minor}.0-sandbox",
            bookmark_every_s=self.settings.bookmark_every_s,
        )
        understood = DialectLayer(RequestReader(build_app(server)), self._find)
        faulty = FaultLayer(understood, self.faults)
        return ControlLayer(
            faulty, self.faults, authenticate=self._authenticate, compact=self.compact
        )

    async def _authenticate(self, request: Request) -> User:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise Unauthorized("Unauthorized")
        return _ADMIN

    async def _find(self, target: Target) -> Manifest | None:
        for kind in self.kinds.all:
            if kind.key == (target.group, target.plural) and target.name is not None:
                return await self.storage.get(kind, target.namespace, target.name)
        return None

    def _kind_of(self, manifest: Manifest) -> Kind:
        wanted = (manifest.get("apiVersion"), manifest.get("kind"))
        for kind in self.kinds.all:
            if (kind.api_version, kind.kind) == wanted:
                return kind
        raise BadRequest(f"the sandbox does not serve {wanted[1]} in {wanted[0]}")

    async def _create_node(self, node: Manifest) -> Manifest:
        """A node comes with its status, as the kubelet registers it."""
        return await self.writer.create(NODE, node)


async def _allow(user: User, asked: Attributes) -> None:
    """Whoever holds the token may do everything."""


def _new_uid() -> str:
    return str(uuid.uuid4())


def _new_suffix() -> str:
    return "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _priority_class(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


async def serve(settings: SandboxSettings, kubeconfig: Path | None = None) -> None:
    """Run a cluster until cancelled; the kubeconfig is written once it answers, and removed at the end."""
    async with Sandbox(settings) as sandbox:
        if kubeconfig is not None:
            sandbox.write_kubeconfig(kubeconfig)
        try:
            await asyncio.Event().wait()
        finally:
            if kubeconfig is not None:
                kubeconfig.unlink(missing_ok=True)  # noqa: ASYNC240 (one file, at the very end)

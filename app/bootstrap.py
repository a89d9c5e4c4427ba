"""The one place where parts are joined: settings in, running roles out.

Two roles make the service. They meet only in Postgres: the *engine* leads or stands by, the *api* answers people and
webhooks, so a cycle never delays a request. Whoever runs them (`sluice serve`, a Deployment, a test) stops them by
cancelling.
"""

import asyncio
import dataclasses
import os
import signal
import socket
import ssl
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import structlog
import uvicorn
import uvloop

from app import certificates, clock
from app.api.application import FrontDoor, front_door
from app.apiserver import bodies
from app.certificates import Certificates
from app.core.policy import Policy
from app.engine.leader import Leader
from app.engine.registration import Endpoint
from app.engine.service import Service, Surroundings
from app.engine.supervisor import keep
from app.errors import BadRequest, Misconfigured, Unavailable
from app.intake import configuration
from app.kube import kubeconfig
from app.kube.client import KubeClient
from app.kube.config import SERVICE_ACCOUNT, ClusterConfig, in_cluster
from app.kube.config import Limits as ClusterLimits
from app.settings import Settings
from app.store import migrate
from app.store.lease import Lease
from app.store.session import Database, Limits
from app.webhooks import application as webhooks

log = structlog.get_logger("sluice")

KUBE_SYSTEM = "kube-system"
GRACE_S = 3
KEEP_ALIVE_S = 120
"""An API server keeps idle connections to webhooks for 90 s; a call over one that we just closed fails a create."""
BACKLOG = 2048
RETRY_S = 2.0
SCHEMA_WAIT_S = 60.0
PACE = ClusterLimits(qps=1000.0, burst=2000)
"""The engine's: about three requests a job, and how many are under way at once is bounded elsewhere."""
RENEWAL = Limits(statement_s=2.0, lock_s=1.0, idle_in_transaction_s=2.0)
"""A renewal that takes a quarter of the term is late already."""


async def run_engine(settings: Settings) -> None:
    """Lead, or stand by to lead."""
    rules = policy(settings)
    config = dataclasses.replace(cluster_config(settings), limits=PACE)
    database = await open_database(settings, "sluice-engine", pool_size=8)
    lease_database = await open_database(settings, "sluice-lease", pool_size=2, limits=RENEWAL)
    try:
        async with KubeClient(config) as client:
            given = _surroundings(settings, rules, database, client)

            async def body(lease: Lease) -> None:
                await Service(given, lease).run()

            leader = Leader(lease_database, given.instance)
            await keep("leader", lambda: leader.lead_for_ever(body))
    finally:
        await database.close()
        await lease_database.close()


async def run_api(settings: Settings) -> None:
    """Serve the Kubernetes face and the webhooks over TLS."""
    rules = policy(settings)
    tls = serving_certificates(settings)
    database = await open_database(settings, "sluice-api", pool_size=8)
    door = front_door(database, clock.now, beside=webhooks.routes, policy=rules)
    config = uvicorn.Config(
        door.app,
        ssl_context_factory=lambda _config, _default: _server_context(tls),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    cache = asyncio.create_task(keep("cache", door.run))
    try:
        with _listener(settings.api_host, settings.api_port) as listener:
            log.info("listening", host=settings.api_host, port=listener.getsockname()[1])
            await _serve(_Server(config), listener, door)
    finally:
        cache.cancel()
        await database.close()


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(server: _Server, listener: socket.socket, door: FrontDoor) -> None:
    """Until cancelled; then open watches end at once, and what is being answered is answered."""
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        door.stopping.set()
        server.should_exit = True
        await serving
        raise


def _listener(host: str, port: int) -> socket.socket:
    """A listening socket. Raises Misconfigured where there can be none."""
    listener: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise Misconfigured(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


def run_until_stopped(role: Callable[[], Awaitable[None]]) -> None:
    """Run a role until SIGTERM or SIGINT; both end it in order."""

    async def main() -> None:
        task = asyncio.ensure_future(role())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            log.info("stopped")

    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(main())


def database_url(settings: Settings) -> str:
    if settings.database_url is None:
        raise Misconfigured("DATABASE_URL is not set: name the Postgres database to use")
    return settings.database_url.get_secret_value()


async def open_database(
    settings: Settings, name: str, *, pool_size: int = 5, limits: Limits | None = None
) -> Database:
    """Connect, waiting for a database that is down, and refuse a schema that does not fit."""
    url = database_url(settings)
    while True:
        try:
            await migrate.check(url, wait_s=SCHEMA_WAIT_S)
            return await Database.open(
                url, application_name=name, pool_size=pool_size, limits=limits
            )
        except Unavailable as error:
            log.warning("database.unreachable", error=error.message, again_in_s=RETRY_S)
            await asyncio.sleep(RETRY_S)


def cluster_config(settings: Settings) -> ClusterConfig:
    """The cluster whose jobs are gated. Raises Misconfigured where none can be found."""
    if settings.kubeconfig is not None:
        return kubeconfig.load(settings.kubeconfig, settings.kube_context)
    if SERVICE_ACCOUNT.exists():
        return in_cluster()
    raise Misconfigured(
        "no cluster to serve: set KUBECONFIG to a kubeconfig file (or try `sluice demo`, which brings its own)"
    )


def serving_certificates(settings: Settings) -> Certificates:
    hosts = ["localhost", "127.0.0.1", f"sluice.{settings.namespace}.svc"]
    if settings.webhook_url:
        hosts.append(urlsplit(settings.webhook_url).hostname or "localhost")
    names = list(dict.fromkeys(hosts))
    return certificates.ensure(settings.data_dir / "certificates", names, clock.now())


def policy(settings: Settings) -> Policy:
    """The rules of the configuration file, and ours beside them. Raises Misconfigured naming what is wrong."""
    configured = configuration.read(None if settings.config is None else _parsed(settings.config))
    if settings.config is not None:
        unused = ", ".join(configured.unused) or "none"
        log.info("configuration.read", file=str(settings.config), without_effect=unused)
    return dataclasses.replace(configured.policy, never_overbook=True, break_loops=True)


def _parsed(file: Path) -> object:
    try:
        body = bodies.parse_yaml(file.read_bytes())
    except OSError as error:
        raise Misconfigured(f"SLUICE_CONFIG: cannot read {file}: {error.strerror}") from None
    except BadRequest as error:
        raise Misconfigured(f"SLUICE_CONFIG: {file}: {error.message}") from None
    if body.duplicates:
        raise Misconfigured(f"SLUICE_CONFIG: {file}: given twice: {', '.join(body.duplicates)}")
    return {} if body.value is None else body.value


def _surroundings(
    settings: Settings, rules: Policy, database: Database, client: KubeClient
) -> Surroundings:
    tls = serving_certificates(settings)
    endpoint = Endpoint(ca=tls.ca_pem(), namespace=settings.namespace, url=_webhook_url(settings))
    return Surroundings(
        database=database,
        client=client,
        endpoint=endpoint,
        policy=rules,
        instance=f"{socket.gethostname()}-{os.getpid()}",
        clock=clock.now,
        new_uid=lambda: str(uuid.uuid4()),
        unmanaged=frozenset({KUBE_SYSTEM, settings.namespace}),
    )


def _webhook_url(settings: Settings) -> str | None:
    """Ourselves on this machine, unless told otherwise; in a cluster, the Service."""
    if settings.webhook_url is not None:
        return settings.webhook_url
    if settings.kubeconfig is None:
        return None
    return f"https://127.0.0.1:{settings.api_port}"


def _server_context(tls: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls.certificate, tls.key)
    return context


def _new_loop() -> asyncio.AbstractEventLoop:
    return uvloop.new_event_loop()

"""The embedded Postgres as one object: start it, ask where it answers, stop it.

`start` returns when the server accepts connections. It answers on loopback TCP and on a socket in a private
directory, to a password in both cases. A server that ends on its own is logged and reported to `on_crash`; bringing
it back is the caller's decision (`start` again does). All calls block: from a coroutine use ``asyncio.to_thread``.
"""

import atexit
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import structlog

from app.errors import Misconfigured, Unavailable
from app.sandbox.postgres import account as accounts
from app.sandbox.postgres import startup
from app.sandbox.postgres.binaries import locate
from app.sandbox.postgres.claim import Claim, Record
from app.sandbox.postgres.cluster import DATABASE, ROLE, Cluster

log = structlog.get_logger("postgres")

_SINGLE_NODE = (
    "embedded Postgres is a single node for trial and development, not for production; "
    "set DATABASE_URL to use a Postgres of your own"
)


@dataclass(frozen=True, slots=True)
class _Run:
    claim: Claim
    server: startup.Server
    record: Record


class EmbeddedPostgres:
    """A Postgres server of our own over `data_dir`, which keeps its data over restarts.

    `durable=False` is for tests: faster, and a crash of the machine may lose or damage the data. `port` None takes
    the last one again if it is free. `user` is whom root runs the server as (default: a system account).
    `on_crash` is called from another thread with what happened.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        durable: bool = True,
        port: int | None = None,
        user: str | None = None,
        max_connections: int | None = None,
        on_crash: Callable[[str], None] | None = None,
    ) -> None:
        self.home = data_dir.absolute()
        connections = max_connections or (100 if durable else 400)
        self._options = startup.Options(durable=durable, port=port, max_connections=connections)
        self._user = user
        self._on_crash = on_crash
        self._run: _Run | None = None
        self._crash: str | None = None
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Over loopback TCP, with password; `socket_url` is the same database over the unix socket."""
        return self._record().url

    @property
    def socket_url(self) -> str:
        return self._record().socket_url

    @property
    def pid(self) -> int:
        return self._record().pid

    @property
    def running(self) -> bool:
        return self._run is not None and not self._run.server.process.ended

    @property
    def crash(self) -> str | None:
        """What happened, if the server ended without being asked to."""
        return self._crash

    def start(self) -> str:
        """Returns the url. Misconfigured says what a person has to change; the data are not touched then."""
        if self.running:
            return self.url
        self.stop()
        self._owner, self._crash = os.getpid(), None
        try:
            run = self._claim_and_run()
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise Misconfigured(f"embedded Postgres cannot use {self.home}: {what}") from error
        if not self.running:
            self.stop()
            raise Misconfigured(
                f"embedded Postgres ended just after its start; see {self.home / 'server.log'}"
            )
        atexit.register(self.stop)
        log.warning(
            "postgres.started", data_dir=str(self.home), port=run.record.port, note=_SINGLE_NODE
        )
        return run.record.url

    def stop(self) -> None:
        """Fast shutdown, in which open transactions are rolled back; harmless when nothing runs."""
        run, self._run = self._run, None
        if (
            run is None or os.getpid() != self._owner
        ):  # a forked child has no say over its parent's server
            return
        atexit.unregister(self.stop)
        startup.end(run.server)
        run.claim.release()

    def _record(self) -> Record:
        if self._run is None or self._run.server.process.ended:
            raise Unavailable(self._crash or f"the embedded Postgres in {self.home} is not running")
        return self._run.record

    def _claim_and_run(self) -> _Run:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        claim = Claim(self.home)
        server = None
        try:
            if claim.previous is not None:
                startup.remove_socket_dir(Path(claim.previous.socket_dir))
            account = accounts.choose(self.home / "data", self._user)
            cluster = Cluster(self.home, locate(account), account)
            password = cluster.prepare(durable=self._options.durable)
            server = startup.start(cluster, self._options, self._ended)
            record = _describe(server, password)
            claim.publish(record)
            self._run = _Run(claim, server, record)  # from here on its end is a crash
        except BaseException:
            if server is not None:
                startup.end(server)
            claim.release()
            raise
        return self._run

    def _ended(self, code: int) -> None:
        run = self._run
        if run is None or not run.server.process.ended:  # it was asked to, or never came up
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._crash = (
            f"the embedded Postgres in {self.home} {how}; its log is {self.home / 'server.log'}"
        )
        run.claim.withdraw()
        log.error("postgres.crashed", data_dir=str(self.home), what=self._crash)
        if self._on_crash is not None:
            self._on_crash(self._crash)


def _describe(server: startup.Server, password: str) -> Record:
    who, port, directory = f"{ROLE}:{password}", server.port, str(server.socket_dir)
    return Record(
        url=f"postgresql://{who}@127.0.0.1:{port}/{DATABASE}",
        socket_url=f"postgresql://{who}@/{DATABASE}?host={quote(directory, safe='/')}&port={port}",
        socket_dir=directory,
        port=port,
        pid=server.process.pid,
        owner_pid=os.getpid(),
    )

"""The embedded Postgres as one object: start it, ask where it answers, stop it.

`start` returns when the server accepts connections, however long recovery after a crash takes, as long as the
server lives. It answers on loopback TCP and on a socket in a private directory, to a password in both cases. A
server that ends on its own is logged and reported to `on_crash`; bringing it back is the caller's decision.
"""

import atexit
import logging
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from app.errors import Misconfigured, Unavailable
from app.sandbox.postgres import account as accounts
from app.sandbox.postgres.binaries import locate
from app.sandbox.postgres.claim import Claim, Record
from app.sandbox.postgres.cluster import DATABASE, ROLE, Cluster
from app.sandbox.postgres.process import ServerProcess, doors, last_lines

_log = logging.getLogger(__name__)

_SOCKET_PATH_BYTES = 107  # sizeof(sockaddr_un.sun_path) less the final zero
_SOCKET_NAME = ".s.PGSQL.65535"
_SHORT_DIRECTORY = "/tmp"  # noqa: S108 - a fresh private directory is made below it
_PORT_ATTEMPTS = 5
_PORT_TAKEN = "could not create any TCP/IP sockets"
_LOG_BYTES = 4_000_000
_FAST_STOP_S = 30.0
_QUICK_STOP_S = 10.0
_POLL_S = 0.01
_PATIENCE_NOTE_S = 10.0

_VOLATILE = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
_SETTINGS = (
    "listen_addresses=127.0.0.1",
    "timezone=UTC",
    "log_timezone=UTC",
    "log_line_prefix=%m [%p] ",
    "cluster_name=sluice",
)


@dataclass(frozen=True, slots=True)
class _Run:
    claim: Claim
    process: ServerProcess
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
        self._durable = durable
        self._port = port
        self._user = user
        self._max_connections = max_connections or (100 if durable else 400)
        self._on_crash = on_crash
        self._run: _Run | None = None
        self._crash: str | None = None
        self._log_start = 0
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
        return self._run is not None and not self._run.process.ended

    @property
    def crash(self) -> str | None:
        """What happened, if the server ended without being asked to."""
        return self._crash

    def start(self) -> str:
        """Returns the url. Misconfigured says what a person has to change; its data are never touched."""
        if self.running:
            return self.url
        self.stop()
        self._owner = os.getpid()
        try:
            self._run = self._claim_and_run()
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise Misconfigured(f"embedded Postgres cannot use {self.home}: {what}") from error
        atexit.register(self.stop)
        _log.warning(
            "embedded Postgres runs in %s on port %s: a single node for trial and development, not for production; "
            "set DATABASE_URL to use a Postgres of your own",
            self.home,
            self._run.record.port,
        )
        return self._run.record.url

    def stop(self) -> None:
        """Fast shutdown, in which open transactions are rolled back; harmless when nothing runs."""
        run, self._run = self._run, None
        if (
            run is None or os.getpid() != self._owner
        ):  # a forked child has no say over its parent's server
            return
        atexit.unregister(self.stop)
        _end(run.process)
        self._remove_socket_dir(run.record.socket_dir)
        run.claim.release()

    def _record(self) -> Record:
        if self._run is None or self._run.process.ended:
            raise Unavailable(self._crash or f"the embedded Postgres in {self.home} is not running")
        return self._run.record

    def _claim_and_run(self) -> _Run:
        self._crash = None
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        claim = Claim(self.home)
        try:
            account = accounts.choose(self.home / "data", self._user)
            cluster = Cluster(self.home, locate(account), account)
            if claim.previous is not None:
                self._remove_socket_dir(claim.previous.socket_dir)
            password = cluster.prepare(durable=self._durable)
            process, port, socket_dir = self._serve(cluster)
            record = _describe(process.pid, port, socket_dir, password)
            claim.publish(record)
        except BaseException:
            claim.release()
            raise
        return _Run(claim, process, record)

    def _serve(self, cluster: Cluster) -> tuple[ServerProcess, int, Path]:
        wanted = cluster.last_port()
        for _ in range(_PORT_ATTEMPTS):
            port = self._port or _free_port(wanted)
            socket_dir = self._socket_dir(cluster)
            process = self._launch(cluster, port, socket_dir)
            if process is not None:
                return process, port, socket_dir
            self._remove_socket_dir(str(socket_dir))
            if _PORT_TAKEN not in self._last_words(cluster):
                break
            if self._port:
                raise Misconfigured(
                    f"port {self._port} on 127.0.0.1 is taken: embedded Postgres needs another one, or none named"
                )
            wanted = 0
        raise Misconfigured(
            f"embedded Postgres did not start in {self.home}; the end of {cluster.log}:\n"
            + last_lines(self._last_words(cluster))
        )

    def _launch(self, cluster: Cluster, port: int, socket_dir: Path) -> ServerProcess | None:
        """A server that accepts connections, or None if it ended before that."""
        process = self._fork(cluster, port, socket_dir)
        ready = False
        try:
            ready = self._await_ready(process, cluster)
        finally:
            if not ready:
                _end(process)
        return process if ready else None

    def _fork(self, cluster: Cluster, port: int, socket_dir: Path) -> ServerProcess:
        settings = [*_SETTINGS, f"max_connections={self._max_connections}"]
        settings += () if self._durable else _VOLATILE
        log = self._open_log(cluster)
        try:
            with doors(cluster.account, cluster.data, socket_dir) as door:
                data, run = door.names
                command = [
                    cluster.binaries.program("postgres"),
                    "-D",
                    data,
                    "-k",
                    run,
                    "-p",
                    str(port),
                ]
                command += [word for setting in settings for word in ("-c", setting)]
                process = ServerProcess(
                    command,
                    account=cluster.account,
                    log=log,
                    on_exit=lambda code: self._ended(process, code),
                )
                process.start(door.descriptors)
        finally:
            os.close(log)
        return process

    def _await_ready(self, process: ServerProcess, cluster: Cluster) -> bool:
        """As long as it takes: crash recovery may replay much, and killing it would only start it over."""
        note_at = time.monotonic() + _PATIENCE_NOTE_S
        while not process.wait(_POLL_S):
            if cluster.status() == (process.pid, "ready"):
                return True
            if time.monotonic() > note_at:
                _log.warning("embedded Postgres in %s is still recovering after a crash", self.home)
                note_at += _PATIENCE_NOTE_S
        return False

    def _ended(self, process: ServerProcess, code: int) -> None:
        run = self._run
        if run is None or run.process is not process:  # asked to, or it never came up
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self._crash = (
            f"the embedded Postgres in {self.home} {how}; its log is {self.home / 'server.log'}"
        )
        run.claim.withdraw()
        _log.error("%s", self._crash)
        if self._on_crash is not None:
            self._on_crash(self._crash)

    def _open_log(self, cluster: Cluster) -> int:
        path = cluster.log
        if path.exists() and path.stat().st_size > _LOG_BYTES:
            path.replace(path.with_name("server.log.1"))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._log_start = os.fstat(descriptor).st_size
        return descriptor

    def _last_words(self, cluster: Cluster) -> str:
        with cluster.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def _socket_dir(self, cluster: Cluster) -> Path:
        if len(os.fsencode(cluster.run / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES:
            return cluster.run
        short = Path(tempfile.mkdtemp(prefix="sluice-pg-", dir=_SHORT_DIRECTORY))
        if cluster.account is not None:
            os.chown(short, cluster.account.uid, cluster.account.gid)
        return short

    def _remove_socket_dir(self, directory: str) -> None:
        """Only one that `_socket_dir` made elsewhere: the usual one stays."""
        if Path(directory).parent == Path(_SHORT_DIRECTORY):
            shutil.rmtree(directory, ignore_errors=True)


def _describe(pid: int, port: int, socket_dir: Path, password: str) -> Record:
    return Record(
        url=f"postgresql://{ROLE}:{password}@127.0.0.1:{port}/{DATABASE}",
        socket_url=f"postgresql://{ROLE}:{password}@/{DATABASE}?host={quote(str(socket_dir), safe='/')}&port={port}",
        socket_dir=str(socket_dir),
        port=port,
        pid=pid,
        owner_pid=os.getpid(),
    )


def _free_port(wanted: int) -> int:
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise Misconfigured("no port on 127.0.0.1 is free")


def _end(process: ServerProcess) -> None:
    """Fast shutdown; if that hangs an immediate one, after which the next start recovers from the log."""
    for number, patience_s in (
        (signal.SIGINT, _FAST_STOP_S),
        (signal.SIGQUIT, _QUICK_STOP_S),
        (signal.SIGKILL, _QUICK_STOP_S),
    ):
        if process.ended:
            return
        process.send(number)
        if process.wait(patience_s):
            return
        _log.warning(
            "embedded Postgres (process %s) did not end %s s after %s",
            process.pid,
            patience_s,
            number.name,
        )

"""Bringing the server program up: its settings, port, socket directory and log, until it accepts connections.

There is no time limit on coming up: crash recovery may replay much, and killing it would only start it over. The
server's own pid file says when it is ready. A port that was free a moment ago may be taken by the time the server
binds it, so an unnamed port is tried again. A unix socket path has 107 bytes; below a longer directory the socket
lies in a short private one, removed at the stop. Why a server did not come up is told in its own last words.
"""

import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from app.errors import Misconfigured
from app.sandbox.postgres.cluster import Cluster
from app.sandbox.postgres.process import ServerProcess, doors, last_lines

log = structlog.get_logger("postgres")

_SOCKET_PATH_BYTES = 107  # sizeof(sockaddr_un.sun_path) less the final zero
_SOCKET_NAME = ".s.PGSQL.65535"
_SHORT_DIRECTORY = Path("/tmp")  # noqa: S108 - a fresh private directory is made below it
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
class Options:
    """What may differ between two runs over the same data; `port` None means any."""

    durable: bool
    port: int | None
    max_connections: int


@dataclass(frozen=True, slots=True)
class Server:
    process: ServerProcess
    port: int
    socket_dir: Path


def start(cluster: Cluster, options: Options, on_exit: Callable[[int], None]) -> Server:
    """A server that accepts connections; Misconfigured with its last words if it will not come up."""
    wanted, words = cluster.last_port(), ""
    for _ in range(_PORT_ATTEMPTS):
        port = options.port or _free_port(wanted)
        begin = _rotate(cluster.log)
        server = _attempt(cluster, options, port, on_exit)
        if server is not None:
            return server
        words = _said_since(cluster.log, begin)
        if _PORT_TAKEN not in words:
            break
        if options.port:
            raise Misconfigured(
                f"port {port} on 127.0.0.1 is taken: embedded Postgres needs another one, or none named"
            )
        wanted = 0
    raise Misconfigured(
        f"embedded Postgres did not start in {cluster.home}; the end of {cluster.log}:\n{last_lines(words)}"
    )


def end(server: Server) -> None:
    _end_process(server.process)
    remove_socket_dir(server.socket_dir)


def remove_socket_dir(directory: Path) -> None:
    """Only one that was made elsewhere: the usual one stays."""
    if directory.parent == _SHORT_DIRECTORY:
        shutil.rmtree(directory, ignore_errors=True)


def _attempt(
    cluster: Cluster, options: Options, port: int, on_exit: Callable[[int], None]
) -> Server | None:
    socket_dir = _socket_dir(cluster)
    process = None
    ready = False
    try:
        process = _fork(cluster, _arguments(options, port), socket_dir, on_exit)
        ready = _await_ready(process, cluster)
    finally:
        if not ready:
            if process is not None:
                _end_process(process)
            remove_socket_dir(socket_dir)
    return Server(process, port, socket_dir) if ready else None


def _arguments(options: Options, port: int) -> list[str]:
    settings = [*_SETTINGS, f"max_connections={options.max_connections}"]
    settings += () if options.durable else _VOLATILE
    return ["-p", str(port), *(word for setting in settings for word in ("-c", setting))]


def _fork(
    cluster: Cluster, arguments: list[str], socket_dir: Path, on_exit: Callable[[int], None]
) -> ServerProcess:
    log = os.open(cluster.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        with doors(cluster.account, cluster.data, socket_dir) as door:
            data, run = door.names
            command = [cluster.binaries.program("postgres"), "-D", data, "-k", run, *arguments]
            process = ServerProcess(command, account=cluster.account, log=log, on_exit=on_exit)
            process.start(door.descriptors)
    finally:
        os.close(log)
    return process


def _await_ready(process: ServerProcess, cluster: Cluster) -> bool:
    note_at = time.monotonic() + _PATIENCE_NOTE_S
    while not process.wait(_POLL_S):
        if cluster.status() == (process.pid, "ready"):
            return True
        if time.monotonic() > note_at:
            log.warning("postgres.still_starting", data_dir=str(cluster.home))
            note_at += _PATIENCE_NOTE_S
    return False


def _end_process(process: ServerProcess) -> None:
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
        log.warning(
            "postgres.slow_stop", pid=process.pid, after_signal=number.name, waited_s=patience_s
        )


def _socket_dir(cluster: Cluster) -> Path:
    if len(os.fsencode(cluster.run / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES:
        return cluster.run
    short = Path(tempfile.mkdtemp(prefix="sluice-pg-", dir=_SHORT_DIRECTORY))
    if cluster.account is not None:
        os.chown(short, cluster.account.uid, cluster.account.gid)
    return short


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


def _rotate(log: Path) -> int:
    """Keep the log from growing without end; returns where the next run's words begin."""
    if not log.exists():
        return 0
    size = log.stat().st_size
    if size <= _LOG_BYTES:
        return size
    log.replace(log.with_name("server.log.1"))
    return 0


def _said_since(log: Path, begin: int) -> str:
    with log.open("rb") as file:
        file.seek(begin)
        return file.read().decode(errors="replace")

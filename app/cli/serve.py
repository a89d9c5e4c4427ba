"""`sluice serve`: one command that runs the whole service, or one role of it.

With every role it is a small supervisor: it brings the embedded Postgres up unless DATABASE_URL names one, starts one
process a role, starts again what ends, and stops all of them in order. A role that says it is misconfigured is not
started again: a person has to act. Nothing outlives it, also after ``kill -9``.
"""

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import structlog

from app import bootstrap
from app.cli import supervised
from app.errors import Misconfigured
from app.sandbox.postgres import EmbeddedPostgres
from app.settings import Settings
from app.store import migrate

log = structlog.get_logger("sluice.serve")

ROLES = ("engine", "api")
EXIT_MISCONFIGURED = 2
STOP_S = 10.0
LONGEST_PAUSE_S = 10.0


def run_role(role: str, settings: Settings) -> None:
    """One role in this process, until it is told to stop."""
    run = bootstrap.run_api if role == "api" else bootstrap.run_engine
    bootstrap.run_until_stopped(lambda: run(settings))


def run_all(settings: Settings) -> None:
    """Every role, each in a process of its own, until this one is told to stop."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    bootstrap.cluster_config(settings)
    bootstrap.serving_certificates(settings)
    with ExitStack() as stack:
        port = settings.api_port or _free_port()
        environment = supervised.environment(
            DATABASE_URL=_database(settings, stack), SLUICE_API_PORT=str(port)
        )
        endpoint = Serving.of(settings, port)
        endpoint.forget()
        stack.callback(endpoint.forget)
        children = [stack.enter_context(Child(role, environment)) for role in ROLES]
        is_known = False
        while not stop.wait(0.2):
            for child in children:
                child.watch()
            if not is_known and endpoint.is_ready():
                endpoint.announce()
                is_known = True
                log.info("serving", url=endpoint.url)


def _database(settings: Settings, stack: ExitStack) -> str:
    """The database to use, with its schema up to date if it is our own."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    server = EmbeddedPostgres(settings.data_dir / "postgres")
    stack.enter_context(server)
    asyncio.run(migrate.upgrade(server.url))
    return server.url


@dataclass(slots=True)
class Child:
    """One role's process, started again when it ends; slower each time while it keeps ending at once."""

    role: str
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    pause_s: float = 0.2
    started_at: float = 0.0
    again_at: float = 0.0

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def watch(self) -> None:
        """Start it again if it has ended and it is time. Raises Misconfigured when it said so."""
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                return
            self.process = None
            if code == EXIT_MISCONFIGURED:
                raise Misconfigured(
                    f"the {self.role} cannot run as it is set up (its reason is above)"
                )
            if time.monotonic() - self.started_at > LONGEST_PAUSE_S:
                self.pause_s = 0.2
            log.warning("role.ended", role=self.role, exit=code, again_in_s=self.pause_s)
            self.again_at = time.monotonic() + self.pause_s
            self.pause_s = min(self.pause_s * 2, LONGEST_PAUSE_S)
        elif time.monotonic() >= self.again_at:
            self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "app", "serve", "--role", self.role]
        self.process = subprocess.Popen(command, env=self.environment)  # noqa: S603
        self.started_at = time.monotonic()


@dataclass(frozen=True, slots=True)
class Serving:
    """What other commands on this machine need to find a running service: a file in the data folder."""

    file: Path
    url: str
    ca: Path
    pid: int = field(default_factory=os.getpid)

    @classmethod
    def of(cls, settings: Settings, port: int) -> "Serving":
        tls = bootstrap.serving_certificates(settings)
        host = "127.0.0.1" if settings.api_host == "0.0.0.0" else settings.api_host  # noqa: S104
        return cls(settings.data_dir / "serving.json", f"https://{host}:{port}", tls.ca.resolve())

    @classmethod
    def find(cls, settings: Settings) -> "Serving":
        """Raises Misconfigured when nothing serves from this folder."""
        file = settings.data_dir / "serving.json"
        try:
            found = json.loads(file.read_text())
            os.kill(found["pid"], 0)
        except (OSError, ValueError, KeyError):
            raise Misconfigured(
                f"no running service in {settings.data_dir}: start `sluice serve` first, or name its address with "
                "--server"
            ) from None
        return cls(file, found["url"], Path(found["ca"]), found["pid"])

    def is_ready(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.ca))
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2, context=context):  # noqa: S310
                return True
        except OSError:
            return False

    def announce(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        content = {"url": self.url, "ca": str(self.ca), "pid": self.pid}
        self.file.write_text(json.dumps(content) + "\n")

    def forget(self) -> None:
        self.file.unlink(missing_ok=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

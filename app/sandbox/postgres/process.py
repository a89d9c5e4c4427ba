"""Starting programs of Postgres as the right user, and knowing when the server ends.

A server lives no longer than this process: `launch` asks the kernel for SIGINT (a fast shutdown) at the death of the
thread that forked. So the fork is done by a thread that does nothing but wait for the server: it cannot end earlier,
whichever thread called `start`, and it notices a crash at once. (The kernel offers this on Linux only.)

When the user changes, directories are handed over as open descriptors and named ``/proc/self/fd/N``: the server's
user need not be able to walk there, so data can lie below ``/root`` without loosening any directory.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.errors import Misconfigured
from app.sandbox.postgres.account import Account

_LAUNCHER = str(Path(__file__).with_name("launch.py"))
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Doors:
    """Names under which the server's user reaches directories, and the descriptors that make them true."""

    names: tuple[str, ...]
    descriptors: tuple[int, ...] = ()


@contextmanager
def doors(account: Account | None, *directories: Path) -> Iterator[Doors]:
    """Valid for programs started within; a started program keeps what it was given."""
    if account is None:
        yield Doors(tuple(str(directory) for directory in directories))
        return
    descriptors: list[int] = []
    try:
        descriptors.extend(os.open(directory, os.O_DIRECTORY) for directory in directories)
        yield Doors(tuple(f"/proc/self/fd/{number}" for number in descriptors), tuple(descriptors))
    finally:
        for number in descriptors:
            os.close(number)


def run_tool(
    command: Sequence[str],
    *,
    account: Account | None,
    stdin: IO[bytes],
    descriptors: Sequence[int] = (),
) -> None:
    """Run a program to its end; Misconfigured with its last words if it fails."""
    done = subprocess.run(  # noqa: S603 - our own program, no shell
        _launched(command, account),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=descriptors,
        env=_environment(),
        cwd="/",
        check=False,
    )
    if done.returncode != 0:
        words = last_lines(done.stdout.decode(errors="replace"))
        raise Misconfigured(f"{Path(command[0]).name} of embedded Postgres failed:\n{words}")


def last_lines(text: str, count: int = 12) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-count:]) or "(it said nothing)"


class ServerProcess:
    """One run of a long-living program; `on_exit` gets its exit code, in the waiting thread."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        account: Account | None,
        log: int,
        on_exit: Callable[[int], None],
    ) -> None:
        self._command = _launched(command, account)
        self._log = log
        self._on_exit = on_exit
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: BaseException | None = None
        self._forked = threading.Event()
        self._ended = threading.Event()

    def start(self, descriptors: Sequence[int] = ()) -> None:
        thread = threading.Thread(
            target=self._fork_and_wait,
            args=(tuple(descriptors),),
            name="embedded-postgres",
            daemon=True,
        )
        thread.start()
        try:
            self._forked.wait()
        except BaseException:  # Ctrl-C at this very moment: nobody would own the server
            self._forked.wait()
            self.send(signal.SIGINT)
            raise
        if self._failure is not None:
            raise self._failure

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("not started")
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def wait(self, timeout_s: float) -> bool:
        """True when it has ended."""
        return self._ended.wait(timeout_s)

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _fork_and_wait(self, descriptors: tuple[int, ...]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=descriptors,
                env=_environment(),
                cwd="/",
                start_new_session=True,  # Ctrl-C in the terminal is for us to answer, not for the server
            )
        except OSError as error:
            self._failure = error
            self._ended.set()
            return
        finally:
            self._forked.set()
        code = self._process.wait()
        self._ended.set()
        self._on_exit(code)


def _launched(command: Sequence[str], account: Account | None) -> list[str]:
    who = f"{account.uid}:{account.gid}" if account else "-"
    return [sys.executable, "-I", "-S", _LAUNCHER, str(os.getpid()), who, *command]


def _environment() -> dict[str, str]:
    """Nothing of the caller's PG* variables or locale: they would change what the server does."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}

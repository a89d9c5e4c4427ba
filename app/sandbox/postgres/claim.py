"""Who uses a data directory, and how others find the running server.

A lock on ``lock`` is held as long as the owning process lives; the kernel drops it at its death, so it is never
stale. ``server.json`` (private to the owner) says where the server answers, and is believed only while the lock is
held. Processes that share the lock by a plain fork would keep it alive; programs started by exec do not.
"""

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from app.errors import Misconfigured

_LOCK = "lock"
_RECORD = "server.json"
_PATIENCE_S = 0.5  # a look by `running_url` holds the lock for an instant


@dataclass(frozen=True, slots=True)
class Record:
    """What ``server.json`` says."""

    url: str
    socket_url: str
    socket_dir: str
    port: int
    pid: int
    owner_pid: int


class Claim:
    """The exclusive use of a data directory, from construction to `release`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._descriptor = os.open(
            home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            _give_to_owner(self._descriptor, home)
            self._take()
        except BaseException:
            os.close(self._descriptor)
            raise
        self.previous = _read(home)
        self.withdraw()

    def publish(self, record: Record) -> None:
        write_private(self._home / _RECORD, json.dumps(asdict(record), indent=2) + "\n")

    def withdraw(self) -> None:
        (self._home / _RECORD).unlink(missing_ok=True)

    def release(self) -> None:
        self.withdraw()
        os.close(self._descriptor)

    def _take(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not _locked(self._descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                holder = (
                    os.pread(self._descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                )
                raise Misconfigured(
                    f"the embedded Postgres in {self._home} is in use by process {holder}: its address is in "
                    f"{self._home / _RECORD} (set DATABASE_URL to that to share it), or stop that process first"
                )
            time.sleep(0.05)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)


def running_url(data_dir: Path) -> str | None:
    """Where the server of `data_dir` answers now; None when no process runs one there."""
    home = data_dir.absolute()
    try:
        descriptor = os.open(home / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(home, error) from error
    try:
        if _locked(descriptor, fcntl.LOCK_SH):
            return None
        record = _read(home)
    except OSError as error:
        raise _unreadable(home, error) from error
    finally:
        os.close(descriptor)
    return record.url if record else None


def write_private(path: Path, text: str) -> None:
    """Replace `path` in one step by a file that only its owner can read."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        _give_to_owner(descriptor, path.parent)
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)


def _give_to_owner(descriptor: int, home: Path) -> None:
    """So that an ordinary user's directory stays usable to that user after root has started a server in it."""
    if os.geteuid() == 0:
        facts = home.stat()
        os.fchown(descriptor, facts.st_uid, facts.st_gid)


def _locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(home: Path) -> Record | None:
    try:
        return Record(**json.loads((home / _RECORD).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _unreadable(home: Path, error: OSError) -> Misconfigured:
    return Misconfigured(
        f"cannot look into {home}: {error.strerror}; ask as the user who started that server"
    )

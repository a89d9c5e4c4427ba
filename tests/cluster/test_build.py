"""Do the programs get compiled once, whole, and with an understandable complaint when they cannot be?

The Go used here is a shell script that writes a file instead of compiling, so this takes no time.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import build

_FAKE_GO = """#!/bin/sh
case "$1" in
list) exit {list_exit_code} ;;
env) echo go9.9.9 ;;
build)
  for last; do :; done
  case "$last" in *{broken_package}) echo "some/file.go:1: it is broken"; exit 2 ;; esac
  while [ "$1" != -o ]; do shift; done
  sleep 0.1
  echo "$last" >> "$(dirname "$0")/compiled"
  echo program > "$2" && chmod +x "$2" ;;
esac
"""


@pytest.fixture
def go_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SLUICE_KUBE_ASSETS", "KUBEBUILDER_ASSETS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    _write_go(folder)
    return folder


def test_programs_are_compiled_once_under_a_name_that_says_with_what(
    go_dir: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    folder = build.ensure_assets(lines.append)
    assert folder.parent == tmp_path / "cache" / "sluice" / "kube-assets"
    assert "-go9.9.9-" in folder.name
    assert {path.name for path in folder.iterdir()} == set(build.PROGRAMS)
    assert any("[5/5] kube-apiserver: done" in line for line in lines)

    assert build.ensure_assets(lines.append) == folder
    assert len((go_dir / "compiled").read_text().splitlines()) == len(build.PROGRAMS)


def test_two_sessions_do_not_compile_side_by_side(go_dir: Path) -> None:
    command = [sys.executable, "-m", "tests.cluster.build"]
    root = build.MODULE_DIR.parents[1]
    sessions = [
        subprocess.Popen(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    answers = [session.communicate(timeout=60) for session in sessions]
    assert answers[0][0] == answers[1][0]
    assert len((go_dir / "compiled").read_text().splitlines()) == len(build.PROGRAMS)


def test_failure_names_the_program_and_shows_what_go_said(go_dir: Path, tmp_path: Path) -> None:
    _write_go(go_dir, broken_package="cmd/kube-scheduler")
    with pytest.raises(
        build.BuildError, match=r"(?s)compiling kube-scheduler failed.*it is broken"
    ):
        build.ensure_assets()
    left = [
        path for path in (tmp_path / "cache" / "sluice" / "kube-assets").iterdir() if path.is_dir()
    ]
    assert left == []


def test_programs_outlive_the_go_that_made_them(go_dir: Path) -> None:
    folder = build.ensure_assets()
    _write_go(go_dir, list_exit_code=1)
    assert build.ensure_assets() == folder


def test_named_folder_has_to_be_complete(
    go_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build.ensure_assets().rename(tmp_path / "elsewhere")
    monkeypatch.setenv("SLUICE_KUBE_ASSETS", str(folder))
    assert build.ensure_assets() == folder

    (folder / "kwok").unlink()
    with pytest.raises(build.BuildError, match="lacks: kwok"):
        build.ensure_assets()

    monkeypatch.delenv("SLUICE_KUBE_ASSETS")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    assert build.ensure_assets() != folder
    assert go_dir.exists()


def _write_go(folder: Path, list_exit_code: int = 0, broken_package: str = "nothing") -> None:
    go = folder / "go"
    go.write_text(_FAKE_GO.format(list_exit_code=list_exit_code, broken_package=broken_package))
    go.chmod(0o755)

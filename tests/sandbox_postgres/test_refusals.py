"""What cannot work is refused in words that say what to do, and the data are left alone."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from app.errors import Misconfigured
from app.sandbox.postgres import EmbeddedPostgres, running_url
from app.sandbox.postgres import binaries as binaries_module
from tests.sandbox_postgres.support import OwnerProcess, ask, is_root, server_processes


def test_a_second_instance_names_the_first(owner: OwnerProcess, home: Path) -> None:
    with pytest.raises(Misconfigured) as refused:
        EmbeddedPostgres(home).start()
    assert f"process {owner.pid}" in refused.value.message
    assert str(home / "server.json") in refused.value.message
    assert running_url(home) == owner.url
    assert owner.server_pid in server_processes(home / "data")


def test_a_second_instance_in_one_process_is_refused_too(server: EmbeddedPostgres) -> None:
    with pytest.raises(Misconfigured, match=f"process {os.getpid()}"):
        EmbeddedPostgres(server.home).start()
    assert running_url(server.home) == server.url


def test_a_taken_port_is_named(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Misconfigured, match=f"port {port} on 127.0.0.1 is taken"):
            EmbeddedPostgres(home, durable=False, port=port).start()
    assert server_processes(home / "data") == []
    with EmbeddedPostgres(home, durable=False, port=port) as server:
        assert f":{port}/" in server.url


def test_the_last_port_is_given_up_when_taken(home: Path) -> None:
    with EmbeddedPostgres(home, durable=False) as first:
        port = int(ask(first.url, "show port"))
    with socket.create_server(("127.0.0.1", port)), EmbeddedPostgres(home, durable=False) as second:
        assert int(ask(second.url, "show port")) != port


def test_another_major_version_is_refused_with_the_way_over(home: Path) -> None:
    with EmbeddedPostgres(home, durable=False):
        pass
    version = home / "data" / "PG_VERSION"
    ours = version.read_text().strip()
    version.write_text("13\n")
    with pytest.raises(Misconfigured) as refused:
        EmbeddedPostgres(home, durable=False).start()
    for words in ("written by Postgres 13", f"brings Postgres {ours}", "pg_dump", "pg_restore"):
        assert words in refused.value.message
    version.write_text(f"{ours}\n")
    with EmbeddedPostgres(home, durable=False) as server:
        assert server.running


def test_a_foreign_directory_is_not_taken_over(home: Path) -> None:
    (home / "data").mkdir(parents=True)
    (home / "data" / "thesis.txt").write_text("dear")
    with pytest.raises(Misconfigured, match="holds no Postgres data"):
        EmbeddedPostgres(home, durable=False).start()
    assert (home / "data" / "thesis.txt").read_text() == "dear"


def test_a_server_that_will_not_start_is_quoted(home: Path) -> None:
    with EmbeddedPostgres(home, durable=False):
        pass
    with (home / "data" / "postgresql.conf").open("a") as file:
        file.write("\nwork_mem = 'plenty'\n")
    with pytest.raises(Misconfigured, match=r'invalid value for parameter "work_mem": "plenty"'):
        EmbeddedPostgres(home, durable=False).start()
    assert running_url(home) is None


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match=str(tmp_path / "file")):
        EmbeddedPostgres(tmp_path / "file").start()


def test_an_unknown_user_is_refused(home: Path) -> None:
    if not is_root():
        pytest.skip("only root chooses a user")
    with pytest.raises(Misconfigured, match="no user 'nobody-such'"):
        EmbeddedPostgres(home, user="nobody-such").start()
    with pytest.raises(Misconfigured, match="which is root"):
        EmbeddedPostgres(home, user="root").start()


def test_a_missing_wheel_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries_module, "_PACKAGE", "embedded_postgres_not_installed")
    with pytest.raises(Misconfigured, match=r"sluice\[embedded\]"):
        EmbeddedPostgres(home).start()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """A file system of 24 MB, where a new cluster of 39 MB has no room."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "sluice-test", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only a root that may mount can make a small file system")
    try:
        home = tmp_path / "postgres"
        with pytest.raises(Misconfigured, match="No space left on device"):
            EmbeddedPostgres(home, durable=False).start()
        assert not (home / "data").exists()
        assert not (home / "data.new").exists()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)

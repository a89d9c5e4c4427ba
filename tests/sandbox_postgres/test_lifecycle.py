"""Start, stop, start again: data stay, addresses stay, nothing is left behind."""

import json
import os
import stat
from pathlib import Path

import asyncpg
import psutil
import pytest
from structlog.testing import capture_logs

from app.errors import Unavailable
from app.sandbox.postgres import EmbeddedPostgres, running_url
from tests.sandbox_postgres.support import ask, server_processes


def test_answers_over_tcp_and_socket(server: EmbeddedPostgres) -> None:
    assert ask(server.url, "select inet_server_addr()::text") == "127.0.0.1/32"
    assert ask(server.socket_url, "select inet_server_addr() is null") is True
    assert ask(server.url, "select current_user || '@' || current_database()") == "sluice@sluice"


@pytest.mark.parametrize("address", ["url", "socket_url"])
def test_refuses_without_the_password(server: EmbeddedPostgres, address: str) -> None:
    url: str = getattr(server, address)
    password = url.partition("sluice:")[2].partition("@")[0]
    with pytest.raises(asyncpg.InvalidPasswordError):
        ask(url.replace(password, "guess"), "select 1")


def test_is_set_up_as_documented(home: Path) -> None:
    with EmbeddedPostgres(home) as server:
        facts = ask(
            server.url,
            "select json_object_agg(name, setting) from pg_settings where name in "
            "('data_checksums', 'fsync', 'full_page_writes', 'synchronous_commit', 'server_encoding', 'TimeZone')",
        )
        assert json.loads(facts) == {
            "data_checksums": "on",
            "fsync": "on",
            "full_page_writes": "on",
            "synchronous_commit": "on",
            "server_encoding": "UTF8",
            "TimeZone": "UTC",
        }
        collation = "select datcollate from pg_database where datname = current_database()"
        assert ask(server.url, collation) == "C"


def test_gives_up_durability_only_when_told(server: EmbeddedPostgres) -> None:
    assert ask(server.url, "show fsync") == "off"
    assert ask(server.url, "show synchronous_commit") == "off"
    assert int(ask(server.url, "show max_connections")) >= 300


def test_keeps_data_and_address_over_a_restart(home: Path) -> None:
    with EmbeddedPostgres(home) as first:
        url = first.url
        ask(url, "create table kept as select 42 as answer")
    with EmbeddedPostgres(home) as second:
        assert second.url == url
        assert ask(url, "select answer from kept") == 42


def test_one_object_starts_and_stops_many_times(home: Path) -> None:
    server = EmbeddedPostgres(home, durable=False)
    for _ in range(2):
        url = server.start()
        assert server.start() == url
        assert ask(url, "select 1") == 1
        server.stop()
        server.stop()
        assert not server.running
        assert server.crash is None
        with pytest.raises(Unavailable, match="not running"):
            _ = server.url


def test_leaves_no_process_and_no_record(home: Path) -> None:
    with EmbeddedPostgres(home, durable=False) as server:
        assert server.pid in server_processes(home / "data")
        assert running_url(home) == server.url
        record = json.loads((home / "server.json").read_text())
        assert (record["pid"], record["owner_pid"]) == (server.pid, os.getpid())
    assert server_processes(home / "data") == []
    assert not (home / "server.json").exists()
    assert running_url(home) is None


def test_an_unused_directory_runs_nothing(home: Path) -> None:
    assert running_url(home) is None
    assert not home.exists()


def test_keeps_everything_private(server: EmbeddedPostgres) -> None:
    for name, mode in {
        "": 0o700,
        "data": 0o700,
        "run": 0o700,
        "password": 0o600,
        "server.json": 0o600,
    }.items():
        assert stat.S_IMODE((server.home / name).stat().st_mode) == mode, name


def test_a_lost_password_is_replaced(home: Path) -> None:
    with EmbeddedPostgres(home, durable=False) as server:
        before = server.url
        ask(before, "create table kept as select 42 as answer")
    (home / "password").unlink()
    with EmbeddedPostgres(home, durable=False) as server:
        assert server.url != before
        assert ask(server.url, "select answer from kept") == 42


def test_an_interrupted_first_start_is_begun_again(home: Path) -> None:
    (home / "data.new" / "base").mkdir(parents=True)
    (home / "data.new" / "PG_VERSION").write_text("18\n")
    (home / "password").write_text("of the interrupted start")
    with EmbeddedPostgres(home, durable=False) as server:
        assert ask(server.url, "select 1") == 1
    assert not (home / "data.new").exists()


def test_says_that_it_is_not_for_production(home: Path) -> None:
    with capture_logs() as lines, EmbeddedPostgres(home, durable=False):
        pass
    [started] = lines
    assert started["event"] == "postgres.started"
    assert "single node for trial and development" in started["note"]
    assert "DATABASE_URL" in started["note"]


def test_the_callers_environment_does_not_leak_in(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("LC_ALL", "xx_XX.UTF-8")
    with EmbeddedPostgres(home, durable=False) as server:
        variables = psutil.Process(server.pid).environ()
        assert not any(name.startswith("PG") for name in variables)
        assert variables["LC_ALL"] == "C"

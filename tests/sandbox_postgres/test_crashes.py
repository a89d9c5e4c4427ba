"""Whoever dies, and however: no server is left behind, no committed row is lost, and it is noticed."""

import os
import queue
import signal
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.errors import Misconfigured, Unavailable
from app.sandbox.postgres import EmbeddedPostgres, cluster, running_url
from app.sandbox.postgres.account import choose
from tests.sandbox_postgres.support import (
    OtherProcess,
    OwnerProcess,
    ask,
    eventually,
    server_processes,
)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_dies_with_its_owner(
    home: Path, owner: OwnerProcess, number: signal.Signals
) -> None:
    ask(owner.url, "create table kept as select 42 as answer")
    assert server_processes(home / "data") != []
    owner.kill(number)
    assert eventually(lambda: server_processes(home / "data") == [], within_s=2)
    assert running_url(home) is None
    with EmbeddedPostgres(home) as again:
        assert ask(again.url, "select answer from kept") == 42


def test_a_start_right_after_the_kill_waits_for_the_old_server(
    home: Path, owner: OwnerProcess
) -> None:
    ask(owner.url, "create table kept as select generate_series(1, 200000) as number")
    os.kill(owner.server_pid, signal.SIGSTOP)
    owner.kill()
    thaw = threading.Timer(0.5, os.kill, (owner.server_pid, signal.SIGCONT))
    thaw.start()
    with EmbeddedPostgres(home) as again:
        assert again.pid != owner.server_pid
        assert ask(again.url, "select count(*) from kept") == 200_000
    thaw.join()


def test_a_server_that_will_not_go_is_named(
    home: Path, owner: OwnerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_LINGER_S", 0.3)
    os.kill(owner.server_pid, signal.SIGSTOP)
    owner.kill()
    try:
        with pytest.raises(Misconfigured, match=f"kill -INT {owner.server_pid}"):
            EmbeddedPostgres(home).start()
    finally:
        os.kill(owner.server_pid, signal.SIGCONT)
    assert eventually(lambda: server_processes(home / "data") == [], within_s=2)


def test_the_server_outlives_the_thread_that_started_it(home: Path, owner: OwnerProcess) -> None:
    assert not eventually(
        lambda: owner.server_pid not in server_processes(home / "data"), within_s=0.5
    )
    assert owner.end() == 0
    assert server_processes(home / "data") == []


def test_a_crash_is_noticed_and_recovered_from(home: Path) -> None:
    told: queue.Queue[str] = queue.Queue()
    server = EmbeddedPostgres(home, on_crash=told.put)
    try:
        ask(server.start(), "create table kept as select 42 as answer")
        with capture_logs() as lines:
            os.kill(server.pid, signal.SIGKILL)
            what = told.get(timeout=5)
        assert "was killed by signal 9" in what
        assert server.crash == what
        assert [(line["event"], line["what"]) for line in lines] == [("postgres.crashed", what)]
        assert not server.running
        assert running_url(home) is None
        with pytest.raises(Unavailable, match="killed by signal 9"):
            _ = server.url
        assert ask(server.start(), "select answer from kept") == 42
        assert server.crash is None
    finally:
        server.stop()
    assert told.empty()


def test_a_pid_file_whose_pid_is_somebody_elses_now(home: Path) -> None:
    with EmbeddedPostgres(home, durable=False) as server:
        ask(server.url, "create table kept as select 42 as answer")
        pid_file = (home / "data" / "postmaster.pid").read_text()
    stale = home / "data" / "postmaster.pid"
    with OtherProcess(choose(home / "data", None)) as other:
        stale.write_text(pid_file.replace(pid_file.splitlines()[0], str(other), 1))
        with EmbeddedPostgres(home, durable=False) as server:
            assert ask(server.url, "select answer from kept") == 42
        os.kill(other, 0)


def test_a_forked_child_does_not_stop_its_parents_server(server: EmbeddedPostgres) -> None:
    child = os.fork()
    if child == 0:
        server.stop()
        os._exit(0)
    os.waitpid(child, 0)
    assert server.running
    assert server.pid in server_processes(server.home / "data")

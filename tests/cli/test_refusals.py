"""Everything a person can get wrong ends in one sentence and status 1 or 2, never in a traceback."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.running import Shell
from tests.postgres import Postgres

UNREACHABLE = "postgresql://postgres@127.0.0.1:1/x"
TOKENS = ("token", "list")


def test_no_database(sluice: Shell) -> None:
    told = sluice(*TOKENS)
    assert told.code == 2
    assert told.sentence().startswith("no database: set DATABASE_URL, or start `sluice serve`")
    assert sluice(*TOKENS, DATABASE_URL="").sentence() == told.sentence(), "empty is unset"
    assert sluice("migrate").sentence().startswith("DATABASE_URL is not set")
    assert sluice.run("serve", "--role", "api").sentence().startswith("DATABASE_URL is not set")


@pytest.mark.parametrize("command", [TOKENS, ("migrate",), ("token", "create", "eve")])
def test_a_database_that_does_not_answer(sluice: Shell, command: tuple[str, ...]) -> None:
    told = sluice(*command, DATABASE_URL=UNREACHABLE)
    assert told.code == 1
    assert told.sentence().startswith("Postgres does not answer: ")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "scheme is expected"),
        ("mysql://a/b", "got 'mysql'"),
        ("postgresql://u:hunter2@127.0.0.1:99999/x", ""),
        ("postgresql://u:hunter2@h:port/x", ""),
        ("postgresql://[bad", ""),
        ("postgresql://127.0.0.1/x?sslmode=maybe", "`sslmode` parameter must be one of"),
    ],
)
def test_a_url_that_is_none(sluice: Shell, url: str, words: str) -> None:
    for command in (TOKENS, ("migrate",)):
        told = sluice(*command, DATABASE_URL=url)
        assert told.code == 2
        assert "not of the form postgresql://user:password@host:5432/database" in told.sentence()
        assert words in told.err
        assert "hunter2" not in told.err


async def test_a_wrong_password(sluice: Shell, postgres: Postgres, database_url: str) -> None:
    await postgres.admin("create role locked login password 'right'")
    rules = postgres.directory / "data" / "pg_hba.conf"
    trusting = rules.read_text()
    rules.write_text(f"host all locked 127.0.0.1/32 scram-sha-256\n{trusting}")
    try:
        await postgres.admin("select pg_reload_conf()")
        told = sluice(*TOKENS, DATABASE_URL=database_url.replace("postgres@", "locked:wrong@"))
    finally:
        rules.write_text(trusting)
        await postgres.admin("select pg_reload_conf()")
        await postgres.admin("drop role locked")
    assert told.code == 2
    assert told.sentence() == (
        'Postgres refuses the connection: password authentication failed for user "locked".'
    )


def test_no_such_database(sluice: Shell, postgres: Postgres) -> None:
    told = sluice(*TOKENS, DATABASE_URL=postgres.url("nowhere"))
    assert told.code == 2
    assert 'database "nowhere" does not exist' in told.sentence()


def test_a_database_without_our_tables(sluice: Shell, empty_url: str) -> None:
    told = sluice(*TOKENS, DATABASE_URL=empty_url)
    assert told.code == 2
    assert "sluice migrate" in told.sentence()


async def test_a_schema_of_a_newer_version(
    admin: Shell, postgres: Postgres, database_url: str
) -> None:
    import asyncpg  # noqa: PLC0415 (tests of the command know no driver otherwise)

    connection = await asyncpg.connect(database_url)
    await connection.execute("update alembic_version set version_num = '9999'")
    await connection.close()
    for command in (("migrate",), TOKENS):
        told = admin(*command)
        assert told.code == 2
        assert "was made by a newer version of Sluice" in told.sentence()
    served = await asyncio.to_thread(lambda: admin.run("serve", "--role", "api"))
    assert served.sentence() == told.sentence()


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SLUICE_PROT": "1"}, "unknown setting SLUICE_PROT: known are DATABASE_URL, "),
        ({"SLUICE_KUBECONFIG": "x"}, "unknown setting SLUICE_KUBECONFIG"),
        ({"SLUICE_DATABASE_URL": "x"}, "unknown setting SLUICE_DATABASE_URL"),
        ({"SLUICE_API_PORT": "http"}, "SLUICE_API_PORT: Input should be a valid integer"),
        ({"SLUICE_API_PORT": "70000"}, "SLUICE_API_PORT: Input should be less than"),
        ({"SLUICE_LOG_LEVEL": "LOUD"}, "SLUICE_LOG_LEVEL: Input should be 'DEBUG'"),
        ({"SLUICE_LOG_FORMAT": "xml"}, "SLUICE_LOG_FORMAT: Input should be 'text' or 'json'"),
    ],
)
def test_settings(sluice: Shell, variables: dict[str, str], words: str) -> None:
    told = sluice(*TOKENS, **variables)
    assert told.code == 2
    assert told.sentence().startswith(words)


def test_settings_that_are_fine(admin: Shell) -> None:
    """Among them what Kubernetes sets for a Service of our name."""
    links = {"SLUICE_PORT": "tcp://10.0.0.1:443", "SLUICE_SERVICE_HOST": "10.0.0.1"}
    assert admin(*TOKENS, SLUICE_LOG_LEVEL="debug", SLUICE_LOG_FORMAT="", **links).code == 0


def test_roles(admin: Shell) -> None:
    assert admin("serve", "--role", "boss").sentence() == (
        "--role boss: expected all, engine or api"
    )
    for command in (("token", "create", "eve"), ("kubeconfig", "--server", "https://h")):
        told = admin(*command, "--role", "boss").sentence()
        assert told == "--role boss: expected admin or viewer"
    assert "eve" not in admin(*TOKENS).out


def test_kubeconfigs_of_the_cluster(sluice: Shell, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text("a: [")
    for role, file, words in (
        ("engine", "", "no cluster to serve: set KUBECONFIG"),
        ("all", bad, "is not YAML"),
    ):
        serve = ("serve", "--role", role)
        told = sluice.run(*serve, DATABASE_URL=UNREACHABLE, KUBECONFIG=str(file))
        assert told.code == 2
        assert words in told.sentence()


def test_data_folders_that_cannot_be_used(sluice: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = {"SLUICE_DATA_DIR": str(tmp_path / "file")}
    told = sluice.run("serve", "--role", "api", DATABASE_URL=UNREACHABLE, **folder).sentence()
    assert told.startswith("cannot prepare serving certificates in ")
    assert sluice(*TOKENS, **folder).sentence().startswith("cannot look into ")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("a: [")
    told = sluice.run("serve", KUBECONFIG=str(kubeconfig), **folder).sentence()
    assert told.startswith(f"The kubeconfig {kubeconfig} is not YAML"), "asked before any folder"


@pytest.mark.parametrize(
    "args",
    [
        ("--kubeconfig", "/nowhere/at/all"),
        ("--port", "99999"),
        ("--nodes", "-1"),
        ("--speed", "0"),
        ("--gpus", "-8"),
    ],
)
def test_sandboxes_that_cannot_be(sluice: Shell, args: tuple[str, ...]) -> None:
    told = sluice("sandbox", *args)
    assert told.code == 2
    assert told.err.startswith("sluice: ")
    assert told.err.count("\n") == 1


def test_usage(sluice: Shell) -> None:
    for args in (
        ("nonsense",),
        ("token", "create"),
        ("serve", "--rôle"),
        ("sandbox", "--port", "x"),
    ):
        told = sluice(*args)
        assert told.code == 2, args
        assert "Traceback" not in told.err
        assert "Usage" in told.err
    assert "Usage" in sluice().out + sluice().err
    assert "kubeconfig" in sluice("--help").out


def test_in_a_process_of_its_own(sluice: Shell) -> None:
    told = sluice.run(*TOKENS)
    assert told.code == 2
    assert told.sentence().startswith("no database")

"""`sluice migrate` and `sluice version`."""

from importlib import metadata

import pytest

from tests.cli.running import Shell


def test_up_down_and_up_again(sluice: Shell, empty_url: str) -> None:
    def migrate(*args: str) -> str:
        done = sluice("migrate", *args, DATABASE_URL=empty_url)
        assert (done.code, done.err) == (0, "")
        return done.out

    first = migrate()
    assert first.startswith("schema ")
    assert first.endswith("(current)\n")
    assert migrate() == first
    assert sluice("token", "create", "eve", DATABASE_URL=empty_url).code == 0
    assert migrate("--to", "base") == "schema none (empty)\n"
    assert migrate() == first
    assert "eve" not in sluice("token", "list", DATABASE_URL=empty_url).out


def test_no_such_revision(admin: Shell) -> None:
    told = admin("migrate", "--to", "nonsense")
    assert told.code == 2
    assert "nonsense" in told.sentence()


def test_version(sluice: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: "1.2.3")
    assert sluice("version").out == "1.2.3\n"

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    told = sluice("version")
    assert (told.code, told.out) == (0, "unknown (run from its source, not installed)\n")

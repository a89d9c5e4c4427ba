"""Tokens and kubeconfigs: made, shown, revoked; what is shown once is shown once."""

import base64
import re
import stat
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from app.store import tokens
from app.store.session import Database
from tests.cli.running import Shell

TEXT = re.compile(r"sluice_[0-9a-f]{12}_[\w-]{43}")


async def test_a_token_is_printed_once_and_works(admin: Shell, database: Database) -> None:
    made = admin("token", "create", "eve", "--role", "admin")
    assert (made.code, made.err) == (0, "")
    text = made.out.removesuffix("\n")
    assert TEXT.fullmatch(text)
    async with database.read() as tx:
        (token,) = await tokens.all_tokens(tx)
        assert await tokens.verify(tx, text, now=token.created_at) == token
    assert (token.name, token.role, token.expires_at) == ("eve", "admin", None)
    listed = admin("token", "list").out
    assert listed.splitlines()[0].split() == ["NAME", "ROLE", "CREATED", "EXPIRES"]
    assert listed.splitlines()[1].split()[:2] == ["eve", "admin"]
    assert text.split("_", 2)[2] not in listed


async def test_a_token_may_end(admin: Shell, database: Database) -> None:
    text = admin("token", "create", "guest", "--days", "1.5").out.strip()
    async with database.read() as tx:
        (token,) = await tokens.all_tokens(tx)
        assert token.expires_at == token.created_at + timedelta(days=1.5)
        assert await tokens.verify(tx, text, now=token.expires_at) is None
    told = admin("token", "list").out.splitlines()[1]
    assert told.endswith(token.expires_at.isoformat(" ", "seconds"))
    for days in ("0", "-1", "nan", "inf", "99999999"):
        assert admin("token", "create", "x", "--days", days).sentence().startswith("--days ")


def test_names_are_unique_and_revoked_by_name(admin: Shell) -> None:
    assert admin("token", "create", "eve").code == 0
    again = admin("token", "create", "eve")
    assert again.code == 1
    assert '"eve" already exists' in again.sentence()
    assert admin("token", "revoke", "eve").code == 0
    assert "eve" not in admin("token", "list").out
    gone = admin("token", "revoke", "eve")
    assert gone.code == 1
    assert gone.sentence() == 'token "eve" not found'


@pytest.mark.parametrize(
    "name", ["", " ", "a" * 101, "a b", "a\nb", "a\x1b[31m", "[bold]x", "-x", "é", "a\x00b"]
)
def test_what_is_no_name(admin: Shell, name: str) -> None:
    """Names stand in audit rows, messages and tables."""
    told = admin("token", "create", "--", name)
    assert told.code == 2
    assert "is no name of a token" in told.sentence()
    assert len(admin("token", "list").out.splitlines()) == 1


def test_names(admin: Shell) -> None:
    names = ["eve@example.com", "ci:deploy+1", "a" * 100, "7.x_y-z"]
    for name in names:
        assert admin("token", "create", name).code == 0
    listed = admin("token", "list").out.splitlines()[1:]
    assert sorted(line.split()[0] for line in listed) == sorted(names)


async def test_a_kubeconfig(admin: Shell, database: Database, tmp_path: Path) -> None:
    file = tmp_path / "sluice.kubeconfig"
    args = ("kubeconfig", "--server", "https://sluice.example.com", "--role", "viewer")
    made = admin(*args, "--name", "dashboard", "-o", str(file))
    assert (made.code, made.out) == (0, "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = yaml.safe_load(file.read_text())
    cluster = content["clusters"][0]["cluster"]
    assert cluster["server"] == "https://sluice.example.com"
    authority = base64.b64decode(cluster["certificate-authority-data"])
    assert authority == (tmp_path / "data" / "certificates" / "ca.crt").read_bytes()
    text = content["users"][0]["user"]["token"]
    async with database.read() as tx:
        (token,) = await tokens.all_tokens(tx)
        assert await tokens.verify(tx, text, now=token.created_at) == token
    assert (token.name, token.role) == ("dashboard", "viewer")


def test_a_kubeconfig_on_standard_output_replaces_nothing(admin: Shell) -> None:
    made = admin("kubeconfig", "--server", "https://h")
    assert yaml.safe_load(made.out)["current-context"] == "sluice"
    assert "admin-" in admin("token", "list").out


def test_a_kubeconfig_that_cannot_be_written_makes_no_token(admin: Shell, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for output in ("/nowhere/at/all", str(tmp_path / "folder")):
        told = admin("kubeconfig", "--server", "https://h", "-o", output)
        assert told.code == 2
        assert told.sentence().startswith(f"cannot write {output}: ")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data", "folder"]


def test_a_kubeconfig_needs_a_service_or_its_address(admin: Shell) -> None:
    assert admin("kubeconfig").sentence().startswith("no running service in ")


def test_an_existing_file_stays_when_making_fails(admin: Shell, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("precious")
    args = ("kubeconfig", "--server", "https://h", "--name", "eve", "-o", str(file))
    assert admin("token", "create", "eve").code == 0
    assert '"eve" already exists' in admin(*args).sentence()
    assert file.read_text() == "precious"

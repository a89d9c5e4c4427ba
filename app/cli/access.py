"""`sluice token` and `sluice kubeconfig`: how people get in.

They speak to the database, not to the API: whoever may do that is the administrator already, and the first token has
to come from somewhere.
"""

import asyncio
import base64
import os
import re
import secrets
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TextIO, TypeVar, get_args

import yaml

from app import bootstrap, clock
from app.cli.serve import Serving
from app.core.manifests import Manifest
from app.errors import Misconfigured
from app.sandbox.postgres import running_url
from app.settings import Settings
from app.store import migrate, tokens
from app.store.audit import Actor
from app.store.session import Database, WriteTx
from app.store.tokens import Role

T = TypeVar("T")

LONGEST_DAYS = 3650

_LETTERS = "letters, digits and any of . _ @ : + -, beginning with a letter or digit"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+-]{0,99}")


def create(settings: Settings, name: str, role: str, days: float | None) -> None:
    chosen = _role(role)
    if days is not None and not 0 < days <= LONGEST_DAYS:
        raise Misconfigured(f"--days {days:g}: expected a number above 0, at most {LONGEST_DAYS}")
    lives = None if days is None else timedelta(days=days)
    print(_in_database(settings, lambda tx: _create(tx, name, chosen, lives)))


def show(settings: Settings) -> None:
    found = _in_database(settings, tokens.all_tokens)
    rows = [("NAME", "ROLE", "CREATED", "EXPIRES")]
    for one in found:
        expires = one.expires_at.isoformat(" ", "seconds") if one.expires_at else "never"
        rows.append((one.name, one.role, one.created_at.isoformat(" ", "seconds"), expires))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def revoke(settings: Settings, name: str) -> None:
    _in_database(settings, lambda tx: tokens.revoke(tx, name))


def kubeconfig(
    settings: Settings, *, role: str, name: str, server: str, output: Path | None
) -> None:
    serving = None if server else Serving.find(settings)
    url = server or (serving.url if serving else "")
    ca = serving.ca if serving else bootstrap.serving_certificates(settings).ca
    chosen = _role(role)
    name = name or f"{chosen}-{_person()}-{secrets.token_hex(3)}"
    with _writable(output) as file:  # before there is a token that nobody would ever see
        text = _in_database(settings, lambda tx: _create(tx, name, chosen))
        yaml.safe_dump(content(url, ca.read_bytes(), text), file, sort_keys=False)


@contextmanager
def _writable(output: Path | None) -> Iterator[TextIO]:
    """A file that only its owner may read, or standard output; what fails leaves no file behind."""
    if output is None:
        yield sys.stdout
        return
    fresh = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            yield file
        fresh.replace(output)
    except OSError as error:
        raise Misconfigured(f"cannot write {output}: {error.strerror}") from error
    finally:
        fresh.unlink(missing_ok=True)


def content(url: str, ca: bytes, token: str) -> Manifest:
    """A kubeconfig for Sluice's API."""
    authority = base64.b64encode(ca).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "sluice",
                "cluster": {"server": url, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": "sluice", "user": {"token": token}}],
        "contexts": [{"name": "sluice", "context": {"cluster": "sluice", "user": "sluice"}}],
        "current-context": "sluice",
    }


def _person() -> str:
    """Who runs this, as far as a name can hold it."""
    return re.sub(r"[^A-Za-z0-9._@+-]", "", os.environ.get("USER", ""))[:60] or "cli"


async def _create(tx: WriteTx, name: str, role: Role, lives: timedelta | None = None) -> str:
    if not _NAME.fullmatch(name):
        raise Misconfigured(f"{name!r} is no name of a token: 1 to 100 {_LETTERS}")
    now = clock.now()
    ends = None if lives is None else now + lives
    _, text = await tokens.create(tx, name=name, role=role, now=now, expires_at=ends)
    return text


def _role(text: str) -> Role:
    for role in get_args(Role):
        if text == role:
            return role  # type: ignore[no-any-return]
    raise Misconfigured(f"--role {text}: expected {' or '.join(get_args(Role))}")


def _in_database(settings: Settings, work: Callable[[WriteTx], Awaitable[T]]) -> T:
    async def run() -> T:
        url = _url(settings)
        await migrate.check(url)
        database = await Database.open(url, application_name="sluice-cli", pool_size=1)
        try:
            result, _ = await database.run(Actor("system", "cli"), work)
        finally:
            await database.close()
        return result

    return asyncio.run(run())


def _url(settings: Settings) -> str:
    """DATABASE_URL, or the embedded server that a running service keeps."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    url = running_url(settings.data_dir / "postgres")
    if url is None:
        raise Misconfigured(
            f"no database: set DATABASE_URL, or start `sluice serve`, which keeps one in {settings.data_dir}"
        )
    return url

"""`sluice token` and `sluice kubeconfig`: how people get in.

They speak to the database, not to the API: whoever may do that is the administrator already, and the first token has
to come from somewhere.
"""

import asyncio
import base64
import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, get_args

import yaml
from rich.console import Console
from rich.table import Table

from app import bootstrap, clock
from app.cli.serve import Serving
from app.core.manifests import Manifest
from app.errors import Misconfigured
from app.sandbox.postgres import running_url
from app.settings import Settings
from app.store import tokens
from app.store.audit import Actor
from app.store.session import Database, WriteTx
from app.store.tokens import Role

T = TypeVar("T")


def create(settings: Settings, name: str, role: str) -> None:
    print(_in_database(settings, lambda tx: _create(tx, name, _role(role))))


def show(settings: Settings) -> None:
    found = _in_database(settings, tokens.all_tokens)
    table = Table("NAME", "ROLE", "CREATED", "EXPIRES", box=None, pad_edge=False)
    for one in found:
        expires = one.expires_at.isoformat(" ", "seconds") if one.expires_at else "never"
        table.add_row(one.name, one.role, one.created_at.isoformat(" ", "seconds"), expires)
    Console().print(table)


def revoke(settings: Settings, name: str) -> None:
    _in_database(settings, lambda tx: tokens.revoke(tx, name))


def kubeconfig(
    settings: Settings, *, role: str, name: str, server: str, output: Path | None
) -> None:
    serving = None if server else Serving.find(settings)
    url = server or (serving.url if serving else "")
    ca = serving.ca if serving else bootstrap.serving_certificates(settings).ca
    chosen = _role(role)
    name = name or f"{chosen}-{os.environ.get('USER') or 'cli'}-{secrets.token_hex(3)}"
    text = _in_database(settings, lambda tx: _create(tx, name, chosen))
    document = yaml.safe_dump(content(url, ca.read_bytes(), text), sort_keys=False)
    if output is None:
        sys.stdout.write(document)
        return
    with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(document)


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


async def _create(tx: WriteTx, name: str, role: Role) -> str:
    _, text = await tokens.create(tx, name=name, role=role, now=clock.now())
    return text


def _role(text: str) -> Role:
    for role in get_args(Role):
        if text == role:
            return role  # type: ignore[no-any-return]
    raise Misconfigured(f"--role {text}: expected {' or '.join(get_args(Role))}")


def _in_database(settings: Settings, work: Callable[[WriteTx], Awaitable[T]]) -> T:
    async def run() -> T:
        database = await Database.open(_url(settings), application_name="sluice-cli", pool_size=1)
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

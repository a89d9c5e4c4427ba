"""`sluice migrate`."""

import asyncio

from app import bootstrap
from app.settings import Settings
from app.store import migrate as migrations


def migrate(settings: Settings, to: str) -> None:
    """Up to a revision, or down to one; prints what the schema is then."""
    url = bootstrap.database_url(settings)
    change = migrations.downgrade if to == "base" else migrations.upgrade
    schema = asyncio.run(change(url, to))
    print(f"schema {schema.current or 'none'} ({schema.state})")

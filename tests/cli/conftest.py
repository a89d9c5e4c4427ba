from pathlib import Path

import pytest

from tests.cli.running import Shell


@pytest.fixture
def sluice(tmp_path: Path) -> Shell:
    """Without a database."""
    return Shell(tmp_path)


@pytest.fixture
def admin(tmp_path: Path, database_url: str) -> Shell:
    """With a migrated database."""
    return Shell(tmp_path, {"DATABASE_URL": database_url})

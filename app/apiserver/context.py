"""What one request knows: who asks, for which object in which version, and the server it asks.

`Server` is the set of things given to the application when it is built (storage, access, clock, dice); a
`RequestContext` is made for each request after authentication and lives as long as the request.
"""

import asyncio
import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from starlette.requests import Request

from app import clock
from app.apiserver.kinds import Kind
from app.apiserver.lines import LineCache
from app.apiserver.options import FieldValidation
from app.apiserver.paths import Target
from app.apiserver.registry import Registry, Served
from app.apiserver.storage import Storage, User


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What is to be authorised: a verb on objects of a kind, or on a path that is no object."""

    verb: str
    kind: Kind | None = None
    subresource: str = ""
    namespace: str | None = None
    name: str | None = None
    path: str = ""


Authenticate = Callable[[Request], Awaitable[User]]
Authorize = Callable[[User, Attributes], Awaitable[None]]
Ready = Callable[[], Awaitable[Mapping[str, str]]]


_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words by accident


async def _always_ready() -> Mapping[str, str]:
    return {}


def _new_uid() -> str:
    return str(uuid.uuid4())


def _new_suffix() -> str:
    return "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))


@dataclass(frozen=True, kw_only=True)
class Server:
    """The application's surroundings.

    `authenticate` raises `Unauthorized` and `authorize` `Forbidden`; `ready` answers what is not ready and why
    (nothing: ready). Setting `stopping` ends all watches at once: do it before the HTTP server waits for its
    connections.
    """

    registry: Registry
    storage: Storage
    authenticate: Authenticate
    authorize: Authorize
    ready: Ready = _always_ready
    clock: Callable[[], datetime] = clock.now
    new_uid: Callable[[], str] = _new_uid
    new_suffix: Callable[[], str] = _new_suffix  # what is added to generateName
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    field_validation: FieldValidation = "Strict"  # for requests that do not say
    advertise_watch: bool = True
    git_version: str = "v1.37.0"
    bookmark_every_s: float = 30.0
    watch_lines: LineCache = field(default_factory=LineCache)


@dataclass(kw_only=True)
class RequestContext:
    server: Server
    request: Request
    request_id: str
    user: User
    served: Served
    target: Target
    now: datetime
    warnings: dict[str, None] = field(default_factory=dict)  # ordered, each once

    @property
    def kind(self) -> Kind:
        return self.served.kind

    def warn(self, text: str) -> None:
        self.warnings[text] = None

    async def authorize(self, verb: str) -> None:
        target = self.target
        await self.server.authorize(
            self.user,
            Attributes(
                verb=verb,
                kind=self.kind,
                subresource=target.subresource,
                namespace=target.namespace,
                name=target.name,
                path=self.request.url.path,
            ),
        )

"""Who is it, and may they?

A bearer token is verified against its hash in Postgres and the verdict is kept for a short while, so that a busy client
costs one query now and then and a revoked token stops working within `KEEP_S`. Admins may do everything, viewers read.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from starlette.requests import Request

from app.apiserver.context import Attributes
from app.apiserver.storage import User
from app.errors import Forbidden, Unauthorized
from app.store import tokens
from app.store.session import Database
from app.store.tokens import Token

KEEP_S = 10.0
REMEMBERED = 4096
READING = ("get", "list", "watch")
GROUPS = {"admin": "sluice:admins", "viewer": "sluice:viewers"}

_WORDS = "Unauthorized: send an API token as 'Authorization: Bearer ...' (sluice kubeconfig makes one)"


@dataclass(slots=True)
class Access:
    database: Database
    clock: Callable[[], datetime]
    _known: OrderedDict[bytes, tuple[datetime, User | None]] = field(default_factory=OrderedDict)

    async def authenticate(self, request: Request) -> User:
        scheme, _, presented = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not presented:
            raise Unauthorized(_WORDS)
        user = await self._user(presented.strip())
        if user is None:
            raise Unauthorized(_WORDS)
        return user

    async def authorize(self, user: User, asked: Attributes) -> None:
        if GROUPS["admin"] in user.groups or asked.verb in READING:
            return
        what = asked.kind.resource if asked.kind else asked.path
        where = f' in the namespace "{asked.namespace}"' if asked.namespace else ""
        raise Forbidden(f'User "{user.name}" cannot {asked.verb} {what}{where}: its role is viewer')

    async def _user(self, presented: str) -> User | None:
        key, now = hashlib.sha256(presented.encode()).digest(), self.clock()
        known = self._known.get(key)
        if known is not None and now - known[0] < timedelta(seconds=KEEP_S):
            return known[1]
        async with self.database.read() as tx:
            token = await tokens.verify(tx, presented, now=now)
        user = None if token is None else _user_of(token)
        self._known[key] = (now, user)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return user


def _user_of(token: Token) -> User:
    return User(name=token.name, groups=(GROUPS[token.role], "system:authenticated"), uid=token.id)

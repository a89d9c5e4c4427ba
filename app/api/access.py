"""Who is it, and may they?

A bearer token is verified against its hash in Postgres and the verdict is kept for a short while, so that a busy client
costs one query now and then and a revoked token stops working within `KEEP_S`. While Postgres is away nobody can be
asked: who was known then stays known for `TRUST_S`, so that reads from memory go on; strangers are told to come back.
Admins may do everything, viewers read.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from starlette.requests import Request

from app.api.patience import Patience
from app.apiserver.context import Attributes
from app.apiserver.storage import User
from app.errors import Forbidden, Unauthorized, Unavailable
from app.store import tokens
from app.store.session import Database
from app.store.tokens import Token

KEEP_S = 10.0
TRUST_S = 900.0
REMEMBERED = 4096
READING = ("get", "list", "watch")
GROUPS = {"admin": "sluice:admins", "viewer": "sluice:viewers"}

_WORDS = (
    "Unauthorized: send an API token as 'Authorization: Bearer ...' (sluice kubeconfig makes one)"
)


@dataclass(frozen=True, slots=True)
class _Verdict:
    at: datetime
    token: Token | None

    def younger_than(self, seconds: float, now: datetime) -> bool:
        return now - self.at < timedelta(seconds=seconds)


@dataclass(slots=True)
class Access:
    database: Database
    clock: Callable[[], datetime]
    patience: Patience
    _known: OrderedDict[bytes, _Verdict] = field(default_factory=OrderedDict)

    async def authenticate(self, request: Request) -> User:
        scheme, _, presented = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not presented:
            raise Unauthorized(_WORDS)
        now = self.clock()
        token = await self._token(presented.strip(), now)
        if token is None or (token.expires_at is not None and token.expires_at <= now):
            raise Unauthorized(_WORDS)
        return _user_of(token)

    async def authorize(self, user: User, asked: Attributes) -> None:
        if GROUPS["admin"] in user.groups or asked.verb in READING:
            return
        what = asked.kind.resource if asked.kind else asked.path
        where = f' in the namespace "{asked.namespace}"' if asked.namespace else ""
        raise Forbidden(f'User "{user.name}" cannot {asked.verb} {what}{where}: its role is viewer')

    async def _token(self, presented: str, now: datetime) -> Token | None:
        """The token behind a text; it may have expired since it was verified."""
        key = hashlib.sha256(presented.encode()).digest()
        known = self._known.get(key)
        if known is not None and known.younger_than(KEEP_S, now):
            return known.token
        try:
            token = await self.patience.ask(self._verify(presented, now))
        except Unavailable:
            if known is None or known.token is None or not known.younger_than(TRUST_S, now):
                raise
            return known.token
        self._remember(key, _Verdict(now, token))
        return token

    async def _verify(self, presented: str, now: datetime) -> Token | None:
        async with self.database.read() as tx:
            return await tokens.verify(tx, presented, now=now)

    def _remember(self, key: bytes, verdict: _Verdict) -> None:
        self._known[key] = verdict
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _user_of(token: Token) -> User:
    return User(name=token.name, groups=(GROUPS[token.role], "system:authenticated"), uid=token.id)

"""The front door as it runs in production, over a real Postgres: uvicorn, TLS, the watch cache, real tokens.

Only the process is ours: several workers of one database can run side by side in one test. `MovingClock` lets a test
live through the seconds after which a verdict is asked for again.
"""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import httpx2
import uvicorn

from app.api.application import FrontDoor, front_door
from app.core.manifests import Manifest
from app.engine.supervisor import keep
from app.store import audit, changes, tokens
from app.store.audit import Actor, Entry
from app.store.session import Database
from app.store.tokens import Role
from app.webhooks.application import routes
from tests.apiserver.running import Kubectl

BASE = "/apis/kueue.x-k8s.io/v1beta2"
TESTER = Actor("system", "tests")


@dataclass
class MovingClock:
    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def pass_s(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


@dataclass
class Worker:
    """One API worker that serves."""

    database: Database
    door: FrontDoor
    url: str
    clock: MovingClock
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def admin(self) -> str:
        return self.tokens["admin"]

    def client(self, token: str | None = None, **options: Any) -> httpx2.AsyncClient:
        """With the admin's token; an empty one sends none."""
        shown = self.admin if token is None else token
        headers = {"Authorization": f"Bearer {shown}"} if shown else {}
        return httpx2.AsyncClient(
            base_url=self.url, headers=headers, verify=False, **{"timeout": 15, **options}
        )

    async def token(self, name: str, role: Role = "viewer", lives_s: float | None = None) -> str:
        now = self.clock()
        ends = None if lives_s is None else now + timedelta(seconds=lives_s)
        return await make_token(self.database, name, role, ends=ends)

    async def state(self) -> tuple[int, int]:
        """What a refused write must leave alone: the newest change number, how many audit rows."""
        async with self.database.read() as tx:
            return await changes.head(tx), len(await audit.entries(tx, limit=100_000))

    async def audited(self, kind: str, name: str) -> list[Entry]:
        """Oldest first."""
        async with self.database.read() as tx:
            found = await audit.entries(tx, kind=kind, name=name)
        return list(reversed(found))


async def make_token(
    database: Database, name: str, role: Role, *, ends: datetime | None = None
) -> str:
    now = datetime.now(UTC)
    async with database.write(TESTER) as tx:
        _, text = await tokens.create(tx, name=name, role=role, now=now, expires_at=ends)
    return text


@asynccontextmanager
async def working(
    url: str, certificate: Path, *, application_name: str = "sluice-api", pool_size: int = 4
) -> AsyncIterator[Worker]:
    """A worker that has loaded its cache; `url` is a migrated database."""
    database = await Database.open(url, application_name=application_name, pool_size=pool_size)
    clock = MovingClock()
    door = front_door(database, clock, beside=routes)
    cache = asyncio.create_task(keep("cache", door.run))
    try:
        async with _listening(door, certificate) as address:
            worker = Worker(database, door, address, clock)
            await until_ready(worker)
            yield worker
    finally:
        cache.cancel()
        await asyncio.gather(cache, return_exceptions=True)
        await database.close()


@asynccontextmanager
async def _listening(door: FrontDoor, certificate: Path) -> AsyncIterator[str]:
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # else asyncio leaves Nagle on
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            door.app,
            log_level="error",
            access_log=False,
            lifespan="off",
            ssl_certfile=certificate,
            ssl_keyfile=certificate,
            timeout_graceful_shutdown=2,
        )
        http = uvicorn.Server(config)
        serving = asyncio.create_task(http.serve(sockets=[listener]))
        while not http.started:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0.01)
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            door.stopping.set()
            http.should_exit = True
            await asyncio.wait_for(serving, 10)


async def until_ready(worker: Worker, *, within_s: float = 10) -> None:
    async with worker.client("") as client, asyncio.timeout(within_s):
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


_numbers: Iterator[int] = itertools.count(1)


@dataclass(frozen=True)
class Corner:
    """A test's own part of a database that it shares with others: names nobody else uses, and a namespace."""

    worker: Worker
    kubectl: Kubectl
    namespace: str

    @classmethod
    def of(cls, worker: Worker, home: Path) -> Self:
        namespace = f"corner-{next(_numbers)}"
        return cls(worker, Kubectl(worker.url, home, namespace, worker.admin), namespace)

    def name(self, word: str) -> str:
        """For objects that live in no namespace."""
        return f"{word}-{self.namespace}"

    def placed(self, manifest: Manifest, name: str = "") -> Manifest:
        """The manifest under a name of this corner, in its namespace if it has one."""
        metadata = {**manifest["metadata"]}
        if "namespace" in metadata:
            metadata["namespace"] = self.namespace
            metadata["name"] = name or metadata["name"]
        else:
            metadata["name"] = self.name(name or metadata["name"])
        return {**manifest, "metadata": metadata}

    def as_(self, token: str) -> Kubectl:
        return replace(self.kubectl, token=token)

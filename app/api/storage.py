"""The Kubernetes face's storage over Postgres: reads from the watch cache, writes through intake."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from app.api.patience import Patience
from app.api.watch_cache import WatchCache
from app.apiserver.kinds import Kind
from app.apiserver.storage import Change, Listing, User, WatchBatch
from app.core.manifests import Manifest
from app.core.policy import Policy
from app.intake.objects import change_object
from app.store.audit import Actor
from app.store.session import Database


@dataclass(frozen=True, slots=True)
class PostgresStorage:
    """Implements `apiserver.storage.Storage`."""

    database: Database
    cache: WatchCache
    patience: Patience
    policy: Policy

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        return await self.cache.get(kind.kind, namespace, name)

    async def list(self, kind: Kind, namespace: str | None) -> Listing:
        return await self.cache.list(kind.kind, namespace)

    async def write(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        change: Change,
        *,
        user: User,
        dry_run: bool,
    ) -> Manifest | None:
        written = await self.patience.write(
            change_object(
                self.database,
                (kind.kind, namespace, name),
                change,
                actor=Actor("user", user.name),
                policy=self.policy,
                dry_run=dry_run,
            )
        )
        if written is not None and not dry_run:
            self.cache.expect(int(written["metadata"]["resourceVersion"]))
        return written

    def watch(
        self, kind: Kind, namespace: str | None, since: int
    ) -> AsyncGenerator[WatchBatch, None]:
        return self.cache.watch(kind.kind, namespace, since)

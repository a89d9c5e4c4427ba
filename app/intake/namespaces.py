"""Namespaces as the cluster shows them: their labels decide which queues their workloads may use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.manifests import Manifest
from app.core.metadata import stamp
from app.store.audit import Actor
from app.store.lease import Lease, guard
from app.store.session import Database, WriteTx

OBSERVER = Actor("system", "observer")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNamespace:
    name: str
    uid: str
    labels: Mapping[str, str]


async def observe_namespaces(
    database: Database,
    lease: Lease,
    seen: Sequence[SeenNamespace],
    gone: Sequence[str],
    now: datetime,
) -> None:
    """`gone` are names; one that was made anew is in both and stays."""

    async def work(tx: WriteTx) -> None:
        await guard(tx, lease)
        known = {one["metadata"]["name"]: one for one in await tx.list("Namespace")}
        kept = {one.name for one in seen}
        for name in gone:
            if name in known and name not in kept:
                tx.remove("Namespace", None, name)
        for one in seen:
            _put(tx, one, known.get(one.name), now)

    await database.run(OBSERVER, work)


def _put(tx: WriteTx, one: SeenNamespace, old: Manifest | None, now: datetime) -> None:
    """A namespace made anew keeps its row; only its labels matter."""
    labels = dict(one.labels)
    if old is not None:
        if labels != (old["metadata"].get("labels") or {}):
            tx.put({**old, "metadata": {**old["metadata"], "labels": labels}})
        return
    metadata: Manifest = {"name": one.name, "uid": one.uid, "creationTimestamp": stamp(now)}
    tx.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {**metadata, "labels": labels}})

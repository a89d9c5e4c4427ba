"""Which kinds are stored, in which table, under which storage version?

The order of `KINDS` is the order in which a transaction locks and writes rows: definitions before what refers to
them, workloads last. A new kind is a row class in `tables`, one line here and a migration.
"""

from dataclasses import dataclass

from sqlalchemy import Table

from app.errors import InvariantBroken
from app.store import tables
from app.store.tables import table_of

KUEUE = "kueue.x-k8s.io/v1beta2"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKind:
    kind: str
    #: As in messages: ``clusterqueues.kueue.x-k8s.io``.
    resource: str
    table: Table
    api_version: str = KUEUE
    #: The fields lie beside the metadata, there is no ``spec``.
    flat: bool = False
    #: An edit can change what a cohort tree may admit; see `app.store.roots`.
    shapes_quota: bool = False


def _kueue(
    row: type[tables.Base], plural: str, *, flat: bool = False, quota: bool = False
) -> StoredKind:
    return StoredKind(
        kind=row.__name__,
        resource=f"{plural}.kueue.x-k8s.io",
        table=table_of(row),
        flat=flat,
        shapes_quota=quota,
    )


KINDS: dict[str, StoredKind] = {
    stored.kind: stored
    for stored in (
        StoredKind(
            kind="Namespace",
            resource="namespaces",
            table=table_of(tables.Namespace),
            api_version="v1",
        ),
        _kueue(tables.WorkloadPriorityClass, "workloadpriorityclasses", flat=True),
        _kueue(tables.Topology, "topologies", quota=True),
        _kueue(tables.ResourceFlavor, "resourceflavors", quota=True),
        _kueue(tables.AdmissionCheck, "admissionchecks", quota=True),
        _kueue(tables.Cohort, "cohorts", quota=True),
        _kueue(tables.ClusterQueue, "clusterqueues", quota=True),
        _kueue(tables.LocalQueue, "localqueues", quota=True),
        _kueue(tables.Workload, "workloads"),
    )
}


def stored_kind(kind: str) -> StoredKind:
    found = KINDS.get(kind)
    if found is None:
        raise InvariantBroken(f"The store keeps no objects of kind {kind!r}.")
    return found

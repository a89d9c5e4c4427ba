"""What Postgres keeps of the objects: one table a kind, each row one manifest.

Identity is in columns, the rest of the metadata, `spec` and `status` are jsonb exactly as the API showed them, and what
queries and guards need of them is *generated* by Postgres from the jsonb, so that a column can never disagree with its
manifest. Names sort by bytes (collation "C"), as Kubernetes and Python sort them, whatever the locale of the server.
`namespace` is the empty string for kinds without one: a null would not take part in the unique key.

Workload rows carry besides their manifest what Sluice itself decided and observed; `app.store.tracking` says what each
of those columns means. Ledgers, feed and lease are in `app.store.journal_tables`. Rows do not leave the store.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    Computed,
    DateTime,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    all_,
    any_,
    literal,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, declared_attr, mapped_column

#: A name or namespace: compared byte by byte.
Name = Text(collation="C")
Json = JSONB(none_as_null=True)
Uid = Uuid(as_uuid=False)
Time = DateTime(timezone=True)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "%(table_name)s_%(column_0_N_name)s",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "ck": "%(table_name)s_%(constraint_name)s_check",
            "pk": "%(table_name)s_pkey",
        }
    )


class ObjectColumns:
    """What every kind has."""

    uid: Mapped[str] = mapped_column(Uid, primary_key=True)
    namespace: Mapped[str] = mapped_column(Name, server_default="")
    name: Mapped[str] = mapped_column(Name)
    #: 0 for kinds whose objects carry no generation.
    generation: Mapped[int] = mapped_column(BigInteger, server_default="0")
    resource_version: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(Time)
    deletion_at: Mapped[datetime | None] = mapped_column(Time)
    #: Labels, annotations, finalizers, owners, managed fields: all that has no column of its own.
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", Json)
    #: For kinds without a spec (WorkloadPriorityClass) all fields beside the metadata.
    spec: Mapped[dict[str, Any] | None] = mapped_column(Json)
    status: Mapped[dict[str, Any] | None] = mapped_column(Json)

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Any, ...]:  # noqa: N805 - SQLAlchemy calls it with the class
        return (UniqueConstraint("namespace", "name"),)


class ResourceFlavor(ObjectColumns, Base):
    __tablename__ = "resource_flavors"


class ClusterQueue(ObjectColumns, Base):
    __tablename__ = "cluster_queues"

    cohort: Mapped[str | None] = mapped_column(
        Name, Computed("(spec ->> 'cohortName'::text)", persisted=True)
    )


class Cohort(ObjectColumns, Base):
    __tablename__ = "cohorts"

    parent: Mapped[str | None] = mapped_column(
        Name, Computed("(spec ->> 'parentName'::text)", persisted=True)
    )


class LocalQueue(ObjectColumns, Base):
    __tablename__ = "local_queues"

    cluster_queue: Mapped[str | None] = mapped_column(
        Name, Computed("(spec ->> 'clusterQueue'::text)", persisted=True)
    )


class WorkloadPriorityClass(ObjectColumns, Base):
    __tablename__ = "workload_priority_classes"


class AdmissionCheck(ObjectColumns, Base):
    __tablename__ = "admission_checks"


class Topology(ObjectColumns, Base):
    __tablename__ = "topologies"


class Namespace(ObjectColumns, Base):
    """Observed from the cluster, never written by users: queues select workloads by its labels."""

    __tablename__ = "namespaces"


class Workload(ObjectColumns, Base):
    __tablename__ = "workloads"

    queue_name: Mapped[str | None] = mapped_column(
        Name, Computed("(spec ->> 'queueName'::text)", persisted=True)
    )
    priority: Mapped[int | None] = mapped_column(
        Integer, Computed("((spec ->> 'priority'::text))::integer", persisted=True)
    )
    #: The cluster queue of the admission, not of the local queue.
    cluster_queue: Mapped[str | None] = mapped_column(
        Name,
        Computed("((status -> 'admission'::text) ->> 'clusterQueue'::text)", persisted=True),
    )

    state: Mapped[str] = mapped_column(Text)
    attempt: Mapped[int] = mapped_column(Integer)
    epoch: Mapped[int] = mapped_column(BigInteger)
    decided_version: Mapped[int] = mapped_column(BigInteger)
    synced_version: Mapped[int] = mapped_column(BigInteger)
    #: The epoch (1970) when a key may be synced at once, so that one range finds all that are due.
    next_sync_at: Mapped[datetime] = mapped_column(Time, server_default=text("'epoch'"))
    sync_failures: Mapped[int] = mapped_column(Integer)
    next_deadline_at: Mapped[datetime | None] = mapped_column(Time)

    job: Mapped[dict[str, Any] | None] = mapped_column(Json)
    template: Mapped[dict[str, Any] | None] = mapped_column(Json)
    job_uid: Mapped[str | None] = mapped_column(
        Text, Computed("(job ->> 'uid'::text)", persisted=True)
    )
    job_kind: Mapped[str | None] = mapped_column(
        Text, Computed("(job ->> 'kind'::text)", persisted=True)
    )
    job_name: Mapped[str | None] = mapped_column(
        Name, Computed("(job ->> 'name'::text)", persisted=True)
    )

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Any, ...]:  # noqa: N805 - SQLAlchemy calls it with the class
        return (
            UniqueConstraint("namespace", "name"),
            CheckConstraint(
                "state in ('pending', 'admitted', 'evicting', 'inactive', 'finished', 'gone')",
                name="state",
            ),
            CheckConstraint("attempt >= 0 and epoch >= 0 and sync_failures >= 0", name="counts"),
            CheckConstraint(
                "synced_version >= 0 and synced_version <= decided_version", name="versions"
            ),
            # A job is decided once: two live workloads of one job would start it twice.
            Index(
                "workloads_one_live_per_job",
                "job_uid",
                unique=True,
                postgresql_where=text("state not in ('finished', 'gone')"),
            ),
            Index("workloads_by_job", "job_uid", postgresql_where=text("job_uid is not null")),
            # The work queue itself: keys whose decision has not reached the cluster yet.
            Index(
                "workloads_to_sync",
                "next_sync_at",
                "uid",
                postgresql_where=text("decided_version > synced_version"),
            ),
            Index(
                "workloads_due",
                "next_deadline_at",
                "uid",
                postgresql_where=text("next_deadline_at is not null"),
            ),
            # Who holds quota of a cluster queue now.
            Index(
                "workloads_charged",
                "cluster_queue",
                "uid",
                postgresql_where=text("state in ('admitted', 'evicting')"),
            ),
        )


def table_of(row: type[Base]) -> Table:
    """The Core table of a row class; statements are written against these."""
    table = row.__table__
    assert isinstance(table, Table)  # noqa: S101 - a declarative class without a join
    return table


def is_any(column: Column[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    """The column equals one of `values`: one array parameter, so one prepared statement whatever their number."""
    return column == any_(literal(list(values), ARRAY(column.type)))


def is_none_of(column: Column[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    return column != all_(literal(list(values), ARRAY(column.type)))

"""What Postgres keeps besides objects: the change feed, leadership, quota guards, ledgers, audit, tokens.

The feed and the ledgers are append-only by manner; `audit` is by trigger (see the first migration). None of these rows
is an object of the API, so none has a resourceVersion, except that `changes.number` *is* everybody's resourceVersion.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Sequence,
    Text,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.store.tables import Base, Json, Name, Time, Uid

#: Taken only by `take_change_numbers()`, under its lock. Number 1 is the horizon of an empty database: "0" means
#: "any version" to Kubernetes clients.
change_numbers = Sequence("change_numbers", metadata=Base.metadata, start=2)


class Change(Base):
    """One committed write of one object; `object` is the manifest after it (before it, when deleted)."""

    __tablename__ = "changes"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(Text)
    namespace: Mapped[str] = mapped_column(Name)
    name: Mapped[str] = mapped_column(Name)
    uid: Mapped[str] = mapped_column(Uid)
    type: Mapped[str] = mapped_column(Text)
    object: Mapped[dict[str, Any]] = mapped_column(Json)
    at: Mapped[datetime] = mapped_column(Time, server_default=func.clock_timestamp())

    __table_args__ = (CheckConstraint("type in ('ADDED', 'MODIFIED', 'DELETED')", name="type"),)


class Lease(Base):
    """Who leads. The epoch is part of the key, so that a guard's key-share lock lets renewals pass."""

    __tablename__ = "lease"

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    epoch: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    holder: Mapped[str] = mapped_column(Text)
    expires_at: Mapped[datetime] = mapped_column(Time)
    backend: Mapped[str] = mapped_column(Text, server_default="")


class CohortRoot(Base):
    """The lock of one quota tree; `version` is the change number that last altered what it may admit."""

    __tablename__ = "cohort_roots"

    name: Mapped[str] = mapped_column(Name, primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger, server_default="0")


class Admission(Base):
    """The usage ledger: what one attempt of one workload holds, or held, of one flavor's resource."""

    __tablename__ = "admissions"

    workload_uid: Mapped[str] = mapped_column(Uid, primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    #: Counts how often the attempt has given a part back: each time a smaller row follows.
    part: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, server_default="0"
    )
    cluster_queue: Mapped[str] = mapped_column(Name, primary_key=True)
    flavor: Mapped[str] = mapped_column(Name, primary_key=True)
    resource: Mapped[str] = mapped_column(Name, primary_key=True)
    namespace: Mapped[str] = mapped_column(Name)
    name: Mapped[str] = mapped_column(Name)
    amount: Mapped[int] = mapped_column(BigInteger)
    #: How much of `amount` was above the cluster queue's nominal quota when it was taken.
    borrowed: Mapped[int] = mapped_column(BigInteger)
    started_at: Mapped[datetime] = mapped_column(Time, server_default=func.now())
    ended_at: Mapped[datetime | None] = mapped_column(Time)

    __table_args__ = (
        CheckConstraint("amount >= 0 and borrowed >= 0 and borrowed <= amount", name="amounts"),
        CheckConstraint("ended_at >= started_at", name="span"),
        Index("admissions_open", "workload_uid", postgresql_where=text("ended_at is null")),
        Index("admissions_by_queue", "cluster_queue", "started_at"),
    )


class Decision(Base):
    """What a cycle concluded for a workload, written when the conclusion differs from the last one."""

    __tablename__ = "decisions"

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    workload_uid: Mapped[str] = mapped_column(Uid)
    at: Mapped[datetime] = mapped_column(Time, server_default=func.clock_timestamp())
    attempt: Mapped[int] = mapped_column(Integer)
    cluster_queue: Mapped[str] = mapped_column(Name)
    outcome: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    message: Mapped[str] = mapped_column(Text)
    facts: Mapped[dict[str, Any] | None] = mapped_column(Json)

    __table_args__ = (Index("decisions_by_workload", "workload_uid", "id"),)


class Audit(Base):
    """Who changed what. A trigger refuses to change or remove a row."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[datetime] = mapped_column(Time, server_default=func.clock_timestamp())
    actor_kind: Mapped[str] = mapped_column(Text)
    actor: Mapped[str] = mapped_column(Text)
    verb: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    namespace: Mapped[str] = mapped_column(Name)
    name: Mapped[str] = mapped_column(Name)
    uid: Mapped[str] = mapped_column(Uid)
    #: The change this row explains.
    number: Mapped[int] = mapped_column(BigInteger)
    before: Mapped[dict[str, Any] | None] = mapped_column(Json)
    after: Mapped[dict[str, Any] | None] = mapped_column(Json)

    __table_args__ = (Index("audit_by_object", "kind", "namespace", "name", "id"),)


class Token(Base):
    """An API token: only the SHA-256 of its secret is kept."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    hash: Mapped[bytes] = mapped_column(LargeBinary)
    role: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Name, unique=True)
    created_at: Mapped[datetime] = mapped_column(Time)
    expires_at: Mapped[datetime | None] = mapped_column(Time)
    last_used_at: Mapped[datetime | None] = mapped_column(Time)

    __table_args__ = (CheckConstraint("role in ('admin', 'viewer')", name="role"),)


class Meta(Base):
    """Facts about this database itself: its id, and how far the feed has been pruned."""

    __tablename__ = "meta"

    key: Mapped[str] = mapped_column(Text, primary_key=True)
    value: Mapped[dict[str, Any]] = mapped_column(Json)

"""What does Sluice keep of a workload beside its manifest?

`decided_version` counts decisions that the cluster must carry out, `synced_version` is the last one it has: a row whose
decided version is ahead *is* an entry of the work queue, so a crash cannot lose one. `attempt` counts admissions,
`epoch` is the leader's that decided last; both only grow, and a finished or gone workload never leaves that state
(checked at every write). Quota is charged in the states admitted and evicting, and in no other.

The work-queue columns move without a new resourceVersion, so a tracking that was read without a lock may be out of
date when it is written: write it as a function of what is stored (`Retrack`) then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self, TypeAlias

from app.core.manifests import Manifest

State = Literal["pending", "admitted", "evicting", "inactive", "finished", "gone"]

CHARGED: frozenset[str] = frozenset({"admitted", "evicting"})
ENDED: frozenset[str] = frozenset({"finished", "gone"})

#: How "may be synced at once" is stored.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    state: State = "pending"
    attempt: int = 0
    epoch: int = 0
    decided_version: int = 0
    synced_version: int = 0
    #: No sync of this key before then (back-off); None: at once.
    next_sync_at: datetime | None = None
    sync_failures: int = 0
    next_deadline_at: datetime | None = None
    #: What was last observed of the job, as JSON; `uid`, `kind` and `name` in it are indexed.
    job: Mapping[str, Any] | None = None
    #: The job's own start-relevant fields, to be put back when it stops.
    template: Mapping[str, Any] | None = None

    def decided(
        self, state: State, *, epoch: int, next_deadline_at: datetime | None = None
    ) -> Self:
        """As it is after a decision that the cluster must carry out; admitting begins a new attempt."""
        return replace(
            self,
            state=state,
            attempt=self.attempt + (state == "admitted"),
            epoch=epoch,
            decided_version=self.decided_version + 1,
            next_sync_at=None,
            sync_failures=0,
            next_deadline_at=next_deadline_at,
        )

    @property
    def charged(self) -> bool:
        return self.state in CHARGED

    @property
    def ended(self) -> bool:
        return self.state in ENDED


#: How a tracking follows from the stored one; pure.
Retrack: TypeAlias = Callable[[Tracking], Tracking]


@dataclass(frozen=True, slots=True)
class Stored:
    """One row: its manifest and, for workloads, its tracking."""

    manifest: Manifest
    tracking: Tracking | None = None

    @property
    def version(self) -> int:
        return int(self.manifest["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True)
class StoredWorkload(Stored):
    """A workload's row, always with its tracking."""

    tracking: Tracking

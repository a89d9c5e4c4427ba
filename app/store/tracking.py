"""What does Sluice keep of a workload beside its manifest?

`decided_version` counts decisions that the cluster must carry out, `synced_version` is the last one it has: a row whose
decided version is ahead *is* an entry of the work queue, so a crash cannot lose one. `attempt` counts admissions,
`epoch` is the leader's that decided last; both only grow, and a finished or gone workload never leaves that state
(checked at every write). Quota is charged in the states admitted and evicting, and in no other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

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

    @property
    def charged(self) -> bool:
        return self.state in CHARGED

    @property
    def ended(self) -> bool:
        return self.state in ENDED


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

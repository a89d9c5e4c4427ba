"""What came of one step of one key."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The cluster has the decision; `job` is what was seen of the job then."""

    job: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defer:
    """Not yet: look again at `until`, or when the job says something."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Settled:
    """The row itself was changed; whatever is still to do, the row says."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The job is gone and so are its pods: the workload goes too, and its quota with it."""


Outcome = Done | Defer | Settled | Gone

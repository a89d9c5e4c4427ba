"""What is proposed for a head of a queue, before it is weighed against the other heads?"""

from dataclasses import dataclass

from app.core.decisions import Explanation
from app.core.flavors import Assignment
from app.core.fungibility import Mode
from app.core.victims import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Nomination:
    """A proposal: flavors for every pod set, and the victims that would have to go."""

    assignment: Assignment
    targets: tuple[Target, ...] = ()
    why: Explanation | None = None  # of one that is not admissible

    @property
    def is_admissible(self) -> bool:
        return self.assignment.mode is Mode.FIT or bool(self.targets)

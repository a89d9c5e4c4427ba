"""What does whoever runs a benchmark want of it?"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """`size` is how many jobs, events ... to use instead of the benchmark's own number."""

    quick: bool = False
    size: int | None = None
    spy: Path | None = None
    """Folder for py-spy's recordings of the service's processes."""

    def sized(self, usual: int) -> int:
        """What was wished for, or the usual size, or a tenth of that for a quick look."""
        return self.size or (usual // 10 if self.quick else usual)

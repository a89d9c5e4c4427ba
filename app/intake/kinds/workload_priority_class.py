"""WorkloadPriorityClass: a name for a priority that counts in queues but not for the pods themselves.

It has no spec and no status. Its value may change; the workloads that name it are rewritten by whoever watches it.
"""

from typing import Annotated

from pydantic import Field

from app.intake.kinds.definition import Definition
from app.intake.kinds.fields import Int32, Object


class WorkloadPriorityClass(Object):
    """A named priority. Jobs choose it with the label kueue.x-k8s.io/priority-class."""

    value: Int32 = Field(
        description="The priority. When it changes, every workload that names this class follows."
    )
    description: Annotated[str, Field(max_length=2048)] | None = Field(
        None, description="When to use this class, for people."
    )


WORKLOAD_PRIORITY_CLASS = Definition(model=WorkloadPriorityClass)

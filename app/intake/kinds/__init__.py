"""The kinds of ``kueue.x-k8s.io``: their fields, defaults and rules, one file a kind.

Each kind is a `Definition` with a `schema` (for discovery, explain and apply) and `prepare(new, old)`, the one pure
function every write passes. Rules that need other objects (does the queue exist, would a cycle close) are not here:
they need the database.
"""

from app.intake.kinds.admission_check import ADMISSION_CHECK
from app.intake.kinds.cluster_queue import CLUSTER_QUEUE
from app.intake.kinds.cohort import COHORT, cohort_cycle
from app.intake.kinds.definition import Definition
from app.intake.kinds.local_queue import LOCAL_QUEUE
from app.intake.kinds.resource_flavor import RESOURCE_FLAVOR
from app.intake.kinds.topology import TOPOLOGY
from app.intake.kinds.workload import WORKLOAD
from app.intake.kinds.workload_priority_class import WORKLOAD_PRIORITY_CLASS

DEFINITIONS = {
    "AdmissionCheck": ADMISSION_CHECK,
    "ClusterQueue": CLUSTER_QUEUE,
    "Cohort": COHORT,
    "LocalQueue": LOCAL_QUEUE,
    "ResourceFlavor": RESOURCE_FLAVOR,
    "Topology": TOPOLOGY,
    "Workload": WORKLOAD,
    "WorkloadPriorityClass": WORKLOAD_PRIORITY_CLASS,
}

__all__ = [
    "ADMISSION_CHECK",
    "CLUSTER_QUEUE",
    "COHORT",
    "DEFINITIONS",
    "LOCAL_QUEUE",
    "RESOURCE_FLAVOR",
    "TOPOLOGY",
    "WORKLOAD",
    "WORKLOAD_PRIORITY_CLASS",
    "Definition",
    "cohort_cycle",
]

"""Our kinds as the API server registers them: names, columns, schema, rules, and the older version.

The meaning of each kind is in `app.intake.kinds`; here it only gets the names by which people reach it. Plurals
and short names are those of Kueue's CRDs, so that commands and scripts keep working.
"""

from app.api import columns
from app.apiserver.kinds import Column, Conversion, Kind
from app.intake.kinds import DEFINITIONS
from app.intake.kinds.fields import GROUP
from app.intake.kinds.v1beta1 import old_version

VERSION = "v1beta2"
OLD_VERSION = "v1beta1"

_DEPRECATED = f"{GROUP}/{OLD_VERSION} is deprecated; use {GROUP}/{VERSION}"


def _kind(
    name: str,
    plural: str,
    *short_names: str,
    shown: tuple[Column, ...],
    namespaced: bool = False,
    status: bool = True,
    selectable: tuple[str, ...] = (),
) -> Kind:
    definition, old = DEFINITIONS[name], old_version(name)
    return Kind(
        group=GROUP,
        version=VERSION,
        kind=name,
        plural=plural,
        singular=name.lower(),
        namespaced=namespaced,
        short_names=short_names,
        categories=("kueue",),
        schema=definition.schema,
        prepare=definition.prepare,
        status=status,
        columns=shown,
        selectable=selectable,
        served={
            OLD_VERSION: Conversion(
                to_storage=old.to_storage,
                from_storage=old.from_storage,
                schema=old.schema,
                deprecated=_DEPRECATED,
            )
        },
    )


KINDS: tuple[Kind, ...] = (
    _kind("AdmissionCheck", "admissionchecks", "ac", shown=columns.ADMISSION_CHECK),
    _kind("ClusterQueue", "clusterqueues", "cq", shown=columns.CLUSTER_QUEUE),
    _kind("Cohort", "cohorts", "co", shown=columns.COHORT),
    _kind(
        "LocalQueue",
        "localqueues",
        "queue",
        "queues",
        "lq",
        shown=columns.LOCAL_QUEUE,
        namespaced=True,
        selectable=("spec.clusterQueue",),
    ),
    _kind(
        "ResourceFlavor",
        "resourceflavors",
        "flavor",
        "flavors",
        "rf",
        shown=columns.RESOURCE_FLAVOR,
        status=False,
    ),
    _kind("Topology", "topologies", shown=columns.TOPOLOGY, status=False),
    _kind(
        "Workload",
        "workloads",
        "wl",
        "kwl",
        "kueueworkload",
        "kueueworkloads",
        shown=columns.WORKLOAD,
        namespaced=True,
        selectable=("spec.queueName", "status.admission.clusterQueue"),
    ),
    _kind(
        "WorkloadPriorityClass",
        "workloadpriorityclasses",
        "wpc",
        shown=columns.WORKLOAD_PRIORITY_CLASS,
        status=False,
    ),
)

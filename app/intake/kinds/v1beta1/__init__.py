"""The same kinds as written in ``kueue.x-k8s.io/v1beta1``, for manifests and clients that still speak it.

Each kind has `to_storage` and `from_storage`, both pure, and a `schema`. They only rename and reshape what differs from
v1beta2 (Kueue's own conversion is the model); everything else passes as it is, also fields that v1beta1 did not know,
so that a client that reads and writes the old version loses nothing. Defaults and rules are applied in v1beta2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.manifests import Manifest
from app.intake.kinds import DEFINITIONS
from app.intake.kinds.v1beta1 import admission_check, cluster_queue, cohort, local_queue, workload
from app.intake.kinds.v1beta1.reshape import as_v1beta1, as_v1beta2

Convert = Callable[[Manifest], Manifest]


@dataclass(frozen=True, kw_only=True)
class OldVersion:
    """What it takes to serve a kind in v1beta1."""

    schema: Mapping[str, Any]
    to_storage: Convert = as_v1beta2
    from_storage: Convert = as_v1beta1


_RESHAPED = {
    "AdmissionCheck": admission_check,
    "ClusterQueue": cluster_queue,
    "Cohort": cohort,
    "LocalQueue": local_queue,
    "Workload": workload,
}


def old_version(kind: str) -> OldVersion:
    schema = DEFINITIONS[kind].schema
    module = _RESHAPED.get(kind)
    if module is None:
        return OldVersion(schema=schema)
    return OldVersion(
        schema=module.schema(schema),
        to_storage=module.to_storage,
        from_storage=module.from_storage,
    )

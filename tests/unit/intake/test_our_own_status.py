"""What the core writes into a Workload's status is itself legal, at every station of a workload's life.

Otherwise the next patch of that status, by whomever, would be refused for what we wrote.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from app.core import lifecycle
from app.core.decisions import Admit, PendingReason
from app.core.manifests import Manifest
from app.core.model import Admission, PodSetAdmission
from tests.unit.intake.samples import pod_set, prepared, told, workload

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
Step = Callable[[Manifest], Manifest]


def admit(manifest: Manifest) -> Manifest:
    given = Admission(
        cluster_queue="research",
        pod_sets=(
            PodSetAdmission(
                name="main",
                flavors={"cpu": "spot", "memory": "spot"},
                usage={"cpu": 1500, "memory": 3 * 2**30},
                count=3,
            ),
        ),
    )
    decision = Admit(
        uid="w-1",
        namespace="team-a",
        name="sample",
        cluster_queue="research",
        roots=("research",),
        admission=given,
        checks=("budget",),
    )
    return lifecycle.admit(manifest, decision, AT)


def wait(manifest: Manifest) -> Manifest:
    return lifecycle.pending(manifest, PendingReason.WAITING_FOR_QUOTA, "it is full", AT)


def evict(manifest: Manifest) -> Manifest:
    return lifecycle.evict(manifest, "ClusterQueueStopped", "the queue stopped", AT)


def release(manifest: Manifest) -> Manifest:
    return lifecycle.release(manifest, AT)


def finish(manifest: Manifest) -> Manifest:
    return lifecycle.finish(manifest, "Succeeded", "done", AT)


@pytest.mark.parametrize(
    "life",
    [
        pytest.param([wait, admit, finish], id="straight"),
        pytest.param([admit, evict, release, wait, admit, finish], id="evicted-and-back"),
    ],
)
def test_every_status_of_ours_is_legal(life: list[Step]) -> None:
    stored = prepared(workload(pod_set(count=3)))
    for step in life:
        changed = step(stored)
        assert told(changed, stored) == []
        stored = prepared(changed, stored)

"""What the core writes into a Workload's status is itself legal, at every station of a workload's life.

Otherwise the next patch of that status, by whomever, would be refused for what we wrote.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from app.core import admission_checks, lifecycle, pods_ready
from app.core.decisions import Admit, PendingReason
from app.core.manifests import Manifest, parse
from app.core.model import Admission, PodSetAdmission, Workload
from app.core.policy import PodsReady, Requeuing
from app.core.requests import asked
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


def not_ready_in_time(manifest: Manifest) -> Manifest:
    return pods_ready.expire(lifecycle.await_pods(manifest, AT), PodsReady(), AT)


def too_often(manifest: Manifest) -> Manifest:
    return pods_ready.expire(manifest, PodsReady(requeuing=Requeuing(limit=0)), AT)


def ready(manifest: Manifest) -> Manifest:
    return pods_ready.observe(manifest, ready=True, now=AT)


def reclaim(manifest: Manifest) -> Manifest:
    return lifecycle.reclaim(manifest, {"main": 2})


def show_requests(manifest: Manifest) -> Manifest:
    noun = parse(manifest)
    assert isinstance(noun, Workload)
    return lifecycle.show_requests(manifest, asked(noun))


def send_back(manifest: Manifest) -> Manifest:
    (check,) = manifest["status"]["admissionChecks"]
    retried = {**check, "state": "Retry", "requeueAfterSeconds": 9}
    status = {**manifest["status"], "admissionChecks": [retried]}
    return admission_checks.answer({**manifest, "status": status}, AT)


def block_on_gates(manifest: Manifest) -> Manifest:
    return lifecycle.block_on_gates(manifest, "a gate is closed", AT)


def release(manifest: Manifest) -> Manifest:
    return lifecycle.release(manifest, AT)


def finish(manifest: Manifest) -> Manifest:
    return lifecycle.finish(manifest, "Succeeded", "done", AT)


@pytest.mark.parametrize(
    "life",
    [
        pytest.param([wait, admit, finish], id="straight"),
        pytest.param([admit, evict, release, wait, admit, finish], id="evicted-and-back"),
        pytest.param([wait, show_requests, block_on_gates, admit, ready, finish], id="gated"),
        pytest.param([admit, not_ready_in_time, release, admit, ready, evict], id="timed-out"),
        pytest.param([admit, ready, too_often, release], id="given-up"),
        pytest.param([admit, send_back, release, admit], id="sent-back"),
        pytest.param([admit, ready, reclaim, evict, release, admit, finish], id="reclaimed"),
    ],
)
def test_every_status_of_ours_is_legal(life: list[Step]) -> None:
    stored = prepared(workload(pod_set(count=3)))
    for step in life:
        changed = step(stored)
        assert told(changed, stored) == []
        stored = prepared(changed, stored)

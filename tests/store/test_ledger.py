"""Pods that are done give their quota back early: does the ledger say so, in the commit that says they are done?"""

from typing import Any

import pytest

from app.core.manifests import Manifest
from app.store import changes, lease, ledger
from app.store.admission import Cycle, CycleWrite, commit_cycle
from app.store.ledger import Charge, Span
from app.store.session import Database
from tests.store.objects import ADMIN, ENGINE, cluster_queue, uid, with_status, workload

CONDITIONS = [
    {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "QuotaReserved",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
]
ADMISSION = {
    "clusterQueue": "q",
    "podSetAssignments": [
        {
            "name": "main",
            "count": 4,
            "flavors": {"cpu": "default"},
            "resourceUsage": {"cpu": "4"},
        }
    ],
}


@pytest.fixture
async def admitted(database: Database) -> Manifest:
    """Four pods of one cpu each, three of the four cpus borrowed."""
    leading = await lease.take(database, "leader", ttl_s=60)
    assert leading is not None
    pods = [{"name": "main", "count": 4, "template": {"spec": {"containers": []}}}]
    async with database.write(ADMIN) as tx:
        tx.put(cluster_queue("q", 100, cohort="org"))
        tx.put(workload("w", 0, podSets=pods))
    charge = Charge(cluster_queue="q", flavor="default", resource="cpu", amount=4000, borrowed=3000)
    async with database.read() as tx_read:
        seen = await changes.head(tx_read)
    write = CycleWrite(
        manifest=with_status(tx.written[1], admission=ADMISSION, conditions=CONDITIONS),
        expects="pending",
        track=lambda tracking: tracking.decided("admitted", epoch=leading.epoch),
        roots=("org",),
        charges=(charge,),
    )
    outcome = await commit_cycle(database, leading, Cycle(writes=[write], seen=seen))
    return outcome.stored[0].manifest


async def _done(database: Database, of: Manifest, count: int) -> Manifest:
    async with database.write(ENGINE) as tx:
        tx.put(with_status(of, **_status(of), reclaimablePods=[{"name": "main", "count": count}]))
    return tx.written[0]


def _status(of: Manifest) -> dict[str, Any]:
    return {key: value for key, value in of["status"].items() if key != "reclaimablePods"}


async def _spans(database: Database) -> list[Span]:
    async with database.read() as tx:
        found = await ledger.spans(tx, workload_uid=uid(0))
    return sorted(found, key=lambda span: span.started_at)


async def test_each_part_given_back_ends_a_span_and_begins_a_smaller_one(
    database: Database, admitted: Manifest
) -> None:
    one_done = await _done(database, admitted, 1)
    await _done(database, one_done, 3)
    whole, less, least = await _spans(database)
    held = [(span.charge.amount, span.charge.borrowed) for span in (whole, less, least)]
    assert held == [(4000, 3000), (3000, 2000), (1000, 0)], "what was borrowed goes back first"
    assert whole.ended_at == less.started_at
    assert less.ended_at == least.started_at
    assert least.ended_at is None


async def test_all_given_back_leaves_nothing_open(database: Database, admitted: Manifest) -> None:
    await _done(database, admitted, 4)
    spans = await _spans(database)
    assert spans[0].ended_at is not None
    assert [span.charge.amount for span in spans[1:]] == [0]


async def test_the_same_count_again_changes_nothing(database: Database, admitted: Manifest) -> None:
    one_done = await _done(database, admitted, 1)
    await _done(database, one_done, 1)
    assert len(await _spans(database)) == 2

"""The demo's last word: does the ledger's replay see an admission that took too much, and are the sums right?"""

from datetime import UTC, datetime, timedelta

import pytest

from app.cli.demo.summary import summarize
from app.core.manifests import Manifest, parse
from app.core.model import Noun
from app.store.ledger import Charge, Span

START = datetime(2026, 1, 1, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def queue(name: str, nominal: int, borrowing: int | None = None) -> Noun:
    resource: Manifest = {"name": GPU, "nominalQuota": str(nominal)}
    if borrowing is not None:
        resource["borrowingLimit"] = str(borrowing)
    flavor = {"name": "a100", "resources": [resource]}
    spec = {
        "cohortName": "research",
        "resourceGroups": [{"coveredResources": [GPU], "flavors": [flavor]}],
    }
    return parse({"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})


def span(queue: str, amount: int, begin_s: float, end_s: float | None, borrowed: int = 0) -> Span:
    return Span(
        workload_uid=f"{queue}-{amount}-{begin_s}",
        namespace="default",
        name=f"job-{begin_s}",
        attempt=1,
        charge=Charge(
            cluster_queue=queue, flavor="a100", resource=GPU, amount=amount, borrowed=borrowed
        ),
        started_at=START + timedelta(seconds=begin_s),
        ended_at=None if end_s is None else START + timedelta(seconds=end_s),
    )


@pytest.mark.parametrize(
    ("spans", "too_much"),
    [
        pytest.param([span("a", 8, 0, 10), span("b", 8, 0, 10)], 0, id="both within their own"),
        pytest.param([span("a", 12, 0, 10), span("b", 4, 1, 10)], 0, id="borrowed what was idle"),
        pytest.param([span("a", 13, 0, 10)], 1, id="above the borrowing limit"),
        pytest.param([span("a", 12, 0, 10), span("b", 5, 1, 10)], 1, id="above the cohort"),
        pytest.param([span("a", 12, 0, 5), span("b", 8, 5, 9)], 0, id="given back just before"),
        pytest.param([span("a", 12, 0, None), span("b", 8, 99, None)], 1, id="never given back"),
    ],
)
def test_replay_sees_every_admission_that_took_too_much(spans: list[Span], too_much: int) -> None:
    nouns = [queue("a", 8, borrowing=4), queue("b", 8)]
    found = summarize(spans, {}, nouns, START + timedelta(seconds=100))
    assert len(found.exceeded) == too_much


def test_sums() -> None:
    spans = [span("a", 8, 10, 20), span("a", 4, 20, 30, borrowed=4)]
    queued_at = {one.workload_uid: START + timedelta(seconds=5) for one in spans}
    found = summarize(spans, queued_at, [queue("a", 8), queue("b", 8)], START)
    a, b = found.queues
    assert (a.jobs, a.wait_mean_s, a.wait_max_s) == (2, 10.0, 15.0)
    assert a.gpu_hours == pytest.approx(120 / 3600)
    assert a.borrowed_gpu_hours == pytest.approx(40 / 3600)
    assert (b.jobs, b.gpu_hours) == (0, 0.0)
    assert found.utilisation == pytest.approx(120 / (16 * 20))

"""Section N: numbers as Kubernetes writes them."""

import time
from typing import Any

import pytest

from app.core.manifests import parse
from app.core.ordering import equivalence_key
from app.core.pods import shape
from app.core.quantity import QuantityError
from app.core.quantity import parse as parse_quantity
from tests.builders import cluster_queue, local_queue, workload
from tests.known_failures.shorthand import FLAVOR
from tests.laws.stage import Stage


def test_fractions_are_summed_before_they_are_rounded() -> None:
    """kueue#12962, #13986: 300m a thousand times is 300."""
    stage = Stage(
        FLAVOR,
        cluster_queue("a", {"default": {"cpu": 300}}),
        local_queue("a", "a"),
        workload("a1", "a", cpu="300m", pods=1000),
    ).settle()

    assert stage.running == ["a1"]
    assert stage.used("a", "cpu") == 300_000
    assert stage.admission("a1")["resourceUsage"] == {"cpu": "300"}


@pytest.mark.parametrize(
    "text",
    [
        *("2E6024865272343", "1E999999", "1e9999999", "1" * 100_000, "NaN", "Infinity", "1_000"),
        *("٣", "\uff11", " 1 ", "1 ", "1\n", "", ".", "+", "0x10", "1e", "1Kii", "1ki"),
    ],
    ids=lambda text: text[:16].strip() or "blank",
)
def test_what_is_no_quantity_costs_nothing(text: str) -> None:
    """kubernetes#131063: refused in words, before any arithmetic."""
    began = time.perf_counter()

    with pytest.raises(QuantityError):
        parse_quantity(text)

    assert time.perf_counter() - began < 0.1


@pytest.mark.parametrize("text", ["-0", "0", "0Ki", "-0.0e3"])
def test_no_zero_is_negative(text: str) -> None:
    assert parse_quantity(text).nanos == 0


@pytest.mark.parametrize(
    "texts", [("1000Mi", "1048576k"), ("1.5Gi", "1536Mi"), ("1", "1000m"), ("1e3", "1k")]
)
def test_quantities_compare_by_value(texts: tuple[str, str]) -> None:
    """kueue#7557: two spellings of one template are one template."""
    one, other = (parse(workload("a1", memory=text)) for text in texts)

    assert one == other
    assert equivalence_key(one) == equivalence_key(other)  # type: ignore[arg-type]


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


SIDECAR, INIT = container("1", restartPolicy="Always"), container("4")


@pytest.mark.parametrize(
    ("spec", "milli"),
    [
        ({"initContainers": [SIDECAR, INIT]}, 5500),
        ({"initContainers": [INIT, SIDECAR]}, 4500),
        ({"initContainers": [container("9")]}, 9500),
        ({"resources": {"requests": {"cpu": "7"}}}, 7500),
        ({"resources": {"limits": {"cpu": "7"}}}, 7500),
    ],
    ids=["sidecar first", "sidecar last", "large init", "pod level", "pod level limit"],
)
def test_a_pod_asks_for_what_kubernetes_would_reserve(spec: dict[str, Any], milli: int) -> None:
    """kueue#565, #1197, #2159, #12780, armada#4615."""
    pod = {"containers": [container("1"), container("2")], "overhead": {"cpu": "500m"}, **spec}

    assert shape({"spec": pod}).requests == {"cpu": milli}


def test_a_limit_without_a_request_is_one() -> None:
    only_limit = {"name": "c", "resources": {"limits": {"cpu": "2"}}}

    assert shape({"spec": {"containers": [only_limit]}}).requests == {"cpu": 2000}

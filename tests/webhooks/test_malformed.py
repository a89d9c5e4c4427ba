"""Reviews that no API server sends: a 4xx with a sentence, never a failure of ours."""

import copy
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.webhooks.reviews import job, review

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
FULL = review(job("main", suspend=False), job("main", suspend=True))


def places(value: Any, way: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [way] if way else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*way, key))
    return found


def put(way: tuple[str, ...], value: Any) -> Any:
    body = copy.deepcopy(FULL)
    node = body
    for step in way[:-1]:
        node = node[step]
    node[way[-1]] = value
    return body


async def check(http: httpx2.AsyncClient, body: Any) -> None:
    for hook in ("mutate", "validate"):
        answer = await http.post(f"/webhooks/{hook}", json=body)
        assert answer.status_code in (200, 400, 413), (answer.status_code, answer.text)
        if answer.status_code == 200:
            assert isinstance(answer.json()["response"]["allowed"], bool)
        else:
            assert answer.json()["message"]


@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(way=st.sampled_from(places(FULL)), value=JSON)
async def test_any_value_at_any_place(
    http: httpx2.AsyncClient, way: tuple[str, ...], value: Any
) -> None:
    await check(http, put(way, value))


@pytest.mark.parametrize("way", places(FULL), ids=".".join)
async def test_a_wrong_type_at_every_place(http: httpx2.AsyncClient, way: tuple[str, ...]) -> None:
    for value in (None, 1, "x", [], {}, [None], {"a": None}, True):
        await check(http, put(way, value))


@pytest.mark.parametrize(
    "body",
    ["", "{", "null", "[]", '"x"', "NaN", '{"a":' * 5000, '{"apiVersion":"admission.k8s.io/v1"}', "\xff"],
)  # fmt: skip
async def test_bodies_that_are_no_reviews(http: httpx2.AsyncClient, body: str) -> None:
    answer = await http.post("/webhooks/mutate", content=body.encode("latin-1"))
    assert answer.status_code == 400
    assert answer.json()["message"]


async def test_a_huge_body(http: httpx2.AsyncClient) -> None:
    answer = await http.post("/webhooks/validate", content=b" " * (3 * 2**20 + 1))
    assert answer.status_code == 413


async def test_older_reviews_and_other_kinds(http: httpx2.AsyncClient) -> None:
    old = {**FULL, "apiVersion": "admission.k8s.io/v1beta1"}
    assert (await http.post("/webhooks/mutate", json=old)).status_code == 400
    pods = put(("request", "kind"), {"group": "", "version": "v1", "kind": "Pod"})
    answer = await http.post("/webhooks/mutate", json=pods)
    assert answer.status_code == 400
    assert "no jobs of kind Pod" in answer.json()["message"]

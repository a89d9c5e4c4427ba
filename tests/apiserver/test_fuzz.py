"""Whatever a client sends, the server answers with an object or a Status, and never with a defect of its own."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.apiserver.test_http_bodies import APPLY, JSON, MERGE, OPERATIONS, collection
from tests.apiserver.toys import GROUP, workshop

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
names = st.sampled_from(
    ["name", "labels", "size", "benches", "crafts", "limits", "owner", "conditions", "finalizers", "type", "x"]
)  # fmt: skip
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=4),
    max_leaves=12,
)
objects = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from([f"{GROUP}/v1", "v1"]) | scalars,
        "kind": st.just("Workshop") | scalars,
        "metadata": values,
        "spec": values,
        "status": values,
    },
)
pointers = st.lists(
    names | st.sampled_from(["spec", "metadata", "status", "0", "-"]), max_size=4
).map(lambda parts: "".join(f"/{part}" for part in parts))
operations = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
            "path": pointers,
            "from": pointers,
            "value": values,
        }
    ),
    max_size=4,
)
relaxed = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Defects are told by the answers; rendering their tracebacks would take longer than the tests."""
    with capture_logs():
        yield


def check(answer: httpx2.Response) -> None:
    body = answer.json()
    assert answer.status_code < 500, body
    assert body["kind"] == ("Workshop" if answer.status_code < 400 else "Status")


async def start(http: httpx2.AsyncClient, namespace: str) -> str:
    manifest = workshop("one", namespace=namespace, crafts=["a"], benches=[{"name": "x"}])
    await http.post(collection(namespace), json=manifest)
    return f"{collection(namespace)}/one"


@relaxed
@given(objects)
async def test_creation_and_replacement(
    http: httpx2.AsyncClient, namespace: str, body: Any
) -> None:
    path = await start(http, namespace)
    text = json.dumps(body).encode()
    check(await http.post(collection(namespace), content=text, headers=JSON))
    check(await http.put(path, content=text, headers=JSON))
    check(await http.patch(f"{path}?fieldManager=f&force=true", content=text, headers=APPLY))


@relaxed
@given(objects)
async def test_merge_patches(http: httpx2.AsyncClient, namespace: str, body: Any) -> None:
    path = await start(http, namespace)
    text = json.dumps(body).encode()
    for place in (path, f"{path}/status"):
        check(await http.patch(f"{place}?fieldValidation=Ignore", content=text, headers=MERGE))


@relaxed
@given(values, values)
async def test_applied_specs(
    http: httpx2.AsyncClient, namespace: str, spec: Any, state: Any
) -> None:
    path = await start(http, namespace)
    body = {**workshop("one", namespace=namespace), "spec": spec, "status": state}
    text = json.dumps(body).encode()
    for place in (path, f"{path}/status"):
        query = "fieldManager=f&force=true&fieldValidation=Ignore"
        check(await http.patch(f"{place}?{query}", content=text, headers=APPLY))


@relaxed
@given(operations)
async def test_json_patches(http: httpx2.AsyncClient, namespace: str, body: Any) -> None:
    path = await start(http, namespace)
    text = json.dumps(body).encode()
    check(await http.patch(f"{path}?fieldValidation=Ignore", content=text, headers=OPERATIONS))

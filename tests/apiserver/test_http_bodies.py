"""What a hostile or broken body gets: a Status with the right code, never a traceback, never a stored object."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import psutil
import pytest

from tests.apiserver.running import Running
from tests.apiserver.toys import GROUP, workshop

JSON = {"Content-Type": "application/json"}
YAML = {"Content-Type": "application/yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
OPERATIONS = {"Content-Type": "application/json-patch+json"}
Wanted = tuple[int, str, str]  # code, reason, part of the message
APPLY = {"Content-Type": "application/apply-patch+yaml"}

TEST = {"op": "test", "path": "/kind", "value": "Workshop"}
COPY = {"op": "copy", "from": "/spec", "path": "/spec/limits"}
# Each copy doubles the object.
DOUBLING = [
    {"op": "add", "path": "/spec/limits", "value": {"a": "x" * 100}},
    *(
        {"op": "copy", "from": "/spec/limits", "path": f"/spec/limits/b{number}"}
        for number in range(31)
    ),
]


def collection(namespace: str, version: str = "v1") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/{namespace}/workshops"


def status(answer: httpx2.Response, code: int, reason: str) -> dict[str, Any]:
    body: dict[str, Any] = answer.json()
    assert answer.status_code == code, body
    assert (body["kind"], body["status"], body["code"], body["reason"]) == (
        "Status",
        "Failure",
        code,
        reason,
    )
    assert "Traceback" not in answer.text
    return body


def spec_of(text: str) -> bytes:
    head = f'"apiVersion":"{GROUP}/v1","kind":"Workshop","metadata":{{"name":"bad"}}'
    return f'{{{head},"spec":{text}}}'.encode()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[]", "one object"),
        (b"null", "one object"),
        (b"", "one object"),
        (b"[" * 200_000, "levels deep"),
        (spec_of('{"limits":' * 70 + "1" + "}" * 70), "levels deep"),
        (spec_of('{"size":NaN}'), "NaN is not a number"),
        (spec_of('{"size":1e999}'), "too large"),
        (spec_of('{"size":' + "9" * 5000 + "}"), "too many digits"),
        (spec_of('{"size":18446744073709551616}'), "does not fit 64 bits"),
        (spec_of('{"owner":"\\ud800"}'), "surrogate"),
        (spec_of('{"owner":"a\\u0000b"}'), "NUL"),
        (spec_of("{" + ",".join(f'"k{number}":1' for number in range(20_000)) + "}"), "keys"),
        (b'{"kind":"Workshop","metadata":{"name":"bad"}}', "'apiVersion' is missing"),
        (b'{"apiVersion":"v1","kind":"Workshop","metadata":{"name":"bad"}}', "does not match the expected API version"),
        (f'{{"apiVersion":"{GROUP}/v1","kind":"Tool","metadata":{{"name":"bad"}}}}'.encode(), "expected kind"),
        (f'{{"apiVersion":"{GROUP}/v1","kind":"Workshop","metadata":7}}'.encode(), "metadata must be"),
        (
            f'{{"apiVersion":"{GROUP}/v1","kind":"Workshop","metadata":{{"name":"bad","labels":{{"a":1}}}}}}'.encode(),
            "metadata.labels must hold strings",
        ),
        (
            f'{{"apiVersion":"{GROUP}/v1","kind":"Workshop","metadata":{{"name":"bad","namespace":"other"}}}}'.encode(),
            "does not match the namespace",
        ),
    ],
)  # fmt: skip
async def test_bad_json(http: httpx2.AsyncClient, namespace: str, body: bytes, told: str) -> None:
    answer = await http.post(collection(namespace), content=body, headers=JSON)
    assert told in status(answer, 400, "BadRequest")["message"]
    assert (await http.get(collection(namespace))).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("a: &x [1]\nb: *x\n", "anchors and aliases"),
        ("a: !!python/object/apply:os.system ['true']\n", "tags"),
        ("a: " + "[" * 100, "levels deep"),
        ("? [a, b]\n: c\n", "key must be text"),
        ("a: .nan\n", "not a number"),
        ("a: [1\n", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
    ],
)
async def test_bad_yaml(http: httpx2.AsyncClient, namespace: str, body: str, told: str) -> None:
    answer = await http.post(collection(namespace), content=body.encode(), headers=YAML)
    assert told in status(answer, 400, "BadRequest")["message"]


async def test_yaml_is_read_as_kubernetes_reads_it(
    http: httpx2.AsyncClient, namespace: str
) -> None:
    text = f"""
apiVersion: {GROUP}/v1
kind: Workshop
metadata: {{name: one}}
spec:
  size: 0x10
  owner: 2026-01-01T00:00:00Z
  benches: [{{name: "on", vice: yes}}, {{name: 1:30}}]
"""
    made = await http.post(collection(namespace), content=text.encode(), headers=YAML)
    assert made.status_code == 201, made.text
    assert made.json()["spec"] == {
        "size": 16,
        "owner": "2026-01-01T00:00:00Z",
        "benches": [{"name": "on", "vice": True}, {"name": "1:30"}],
    }


async def test_huge_bodies_are_refused_without_being_held(
    api: Running, http: httpx2.AsyncClient, namespace: str
) -> None:
    before = psutil.Process().memory_info().rss

    async def endless() -> AsyncIterator[bytes]:
        piece = b"x" * 65536
        for _ in range(800):
            yield piece
            await asyncio.sleep(0)

    answer = await http.post(collection(namespace), content=endless(), headers=JSON)
    status(answer, 413, "RequestEntityTooLarge")
    assert psutil.Process().memory_info().rss - before < 25 * 1024 * 1024
    declared = {**JSON, "Content-Length": str(50 * 1024 * 1024)}
    answer = await http.post(
        collection(namespace), content=b"y" * (50 * 1024 * 1024), headers=declared
    )
    status(answer, 413, "RequestEntityTooLarge")


async def test_large_yaml_and_protobuf_are_refused(
    http: httpx2.AsyncClient, namespace: str
) -> None:
    big = b"a: " + b"x" * 300_000
    status(
        await http.post(collection(namespace), content=big, headers=YAML),
        413,
        "RequestEntityTooLarge",
    )
    protobuf = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    refused = await http.post(collection(namespace), content=b"k8s\0", headers=protobuf)
    status(refused, 415, "UnsupportedMediaType")


async def test_duplicate_fields_are_told_with_their_paths(
    http: httpx2.AsyncClient, namespace: str
) -> None:
    body = spec_of('{"size":1,"size":2,"benches":[{"name":"a","name":"b"}]}')
    refused = await http.post(collection(namespace), content=body, headers=JSON)
    told = status(refused, 400, "BadRequest")["message"]
    assert 'duplicate field "spec.size", duplicate field "spec.benches[0].name"' in told
    warned = await http.post(
        f"{collection(namespace)}?fieldValidation=Warn", content=body, headers=JSON
    )
    assert warned.status_code == 201
    assert warned.headers.get_list("warning") == [
        '299 - "duplicate field \\"spec.size\\""',
        '299 - "duplicate field \\"spec.benches[0].name\\""',
    ]
    assert warned.json()["spec"] == {"size": 2, "benches": [{"name": "b"}]}
    yaml = f"apiVersion: {GROUP}/v1\nkind: Workshop\nmetadata: {{name: y}}\nspec: {{size: 1, size: 2}}\n"
    refused = await http.post(collection(namespace), content=yaml.encode(), headers=YAML)
    assert 'duplicate field "spec.size"' in status(refused, 400, "BadRequest")["message"]


@pytest.mark.parametrize(
    ("headers", "body", "wanted"),
    [
        (MERGE, "[]", (400, "BadRequest", "is an object")),
        (MERGE, '{"metadata":{"name":"other"}}', (400, "BadRequest", "does not match the name")),
        (MERGE, '{"metadata":{"uid":"other"}}', (409, "Conflict", "UID in precondition")),
        (MERGE, '{"metadata":{"resourceVersion":"1"}}', (409, "Conflict", "has been modified")),
        (MERGE, '{"kind":"Tool"}', (400, "BadRequest", "expected kind")),
        (MERGE, '{"metadata":null}', (200, "", "")),
        (MERGE, '{"spec":{"shape":"round"}}', (400, "BadRequest", 'unknown field "spec.shape"')),
        (MERGE, '{"spec":{"size":-1}}', (422, "Invalid", "must not be negative")),
        (OPERATIONS, "{}", (400, "BadRequest", "list of operations")),
        (OPERATIONS, '[{"op":"add"}]', (400, "BadRequest", "needs op and path")),
        (OPERATIONS, '[{"op":"fly","path":"/spec"}]', (422, "Invalid", "cannot be applied")),
        (OPERATIONS, '[{"op":"remove","path":"/spec/none"}]', (422, "Invalid", "cannot be applied")),
        (OPERATIONS, '[{"op":"replace","path":"/spec/size/x","value":1}]', (422, "Invalid", "cannot be applied")),
        (OPERATIONS, '[{"op":"replace","path":"","value":[]}]', (400, "BadRequest", "leaves no object")),
        (OPERATIONS, '[{"op":"remove","path":"/metadata"}]', (200, "", "")),
        (OPERATIONS, json.dumps([TEST] * 1001), (413, "RequestEntityTooLarge", "maximum operations")),
        (OPERATIONS, json.dumps([COPY] * 33), (413, "RequestEntityTooLarge", "may copy at most")),
        (OPERATIONS, json.dumps(DOUBLING), (413, "RequestEntityTooLarge", "larger than")),
        (APPLY, "metadata: {name: one}", (400, "BadRequest", "is missing")),
        ({"Content-Type": "application/strategic-merge-patch+json"}, "{}", (415, "UnsupportedMediaType", "accepted")),
        ({"Content-Type": "text/plain"}, "{}", (415, "UnsupportedMediaType", "accepted")),
    ],
)  # fmt: skip
async def test_patches(
    http: httpx2.AsyncClient, namespace: str, headers: dict[str, str], body: str, wanted: Wanted
) -> None:
    code, reason, told = wanted
    made = await http.post(
        collection(namespace), json=workshop("one", namespace=namespace, owner="eve")
    )
    path = f"{collection(namespace)}/one?fieldManager=me"
    answer = await http.patch(path, content=body.encode(), headers=headers)
    if code == 200:
        assert answer.status_code == 200, answer.text
        assert answer.json() == made.json()
    else:
        assert told in status(answer, code, reason)["message"]
        assert (await http.get(f"{collection(namespace)}/one")).json() == made.json()


async def test_apply_needs_a_manager_keys_and_a_sound_body(
    http: httpx2.AsyncClient, namespace: str
) -> None:
    path = f"{collection(namespace)}/one"
    config = workshop("one", namespace=namespace, size=2)
    refused = await http.patch(path, content=json.dumps(config).encode(), headers=APPLY)
    assert "fieldManager" in status(refused, 422, "Invalid")["message"]
    for benches in ([{"seats": 1}], [{"name": "a"}, {"name": "a"}]):
        config["spec"]["benches"] = benches
        refused = await http.patch(
            f"{path}?fieldManager=me", content=json.dumps(config).encode(), headers=APPLY
        )
        assert ".spec.benches" in status(refused, 400, "BadRequest")["message"]
    del config["spec"]["benches"]
    config["metadata"]["managedFields"] = [{"manager": "me"}]
    refused = await http.patch(
        f"{path}?fieldManager=me", content=json.dumps(config).encode(), headers=APPLY
    )
    assert "managedFields must be nil" in status(refused, 400, "BadRequest")["message"]
    del config["metadata"]["managedFields"]
    made = await http.patch(
        f"{path}?fieldManager=me", content=json.dumps(config).encode(), headers=APPLY
    )
    assert made.status_code == 201
    again = await http.patch(
        f"{path}?fieldManager=me", content=json.dumps(config).encode(), headers=APPLY
    )
    assert again.status_code == 200
    assert again.json() == made.json()
    forced = await http.patch(f"{path}?force=true", content=b"{}", headers=MERGE)
    assert "may not be specified for non-apply patch" in status(forced, 422, "Invalid")["message"]

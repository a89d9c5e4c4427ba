"""The rules of single objects over plain HTTP: identity, versions, deletion, forms, errors."""

from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from app.apiserver.kinds import Kind
from app.apiserver.storage import Change, User
from app.core.manifests import Manifest
from app.errors import Throttled
from tests.apiserver.running import Running
from tests.apiserver.test_http_bodies import MERGE, collection, status
from tests.apiserver.toys import GROUP, tool, workshop


async def make(
    http: httpx2.AsyncClient, namespace: str, name: str = "one", **spec: Any
) -> Manifest:
    answer = await http.post(
        collection(namespace), json=workshop(name, namespace=namespace, **spec)
    )
    assert answer.status_code == 201, answer.text
    made: Manifest = answer.json()
    return made


async def test_what_the_server_owns_cannot_be_sent(
    http: httpx2.AsyncClient, namespace: str
) -> None:
    manifest = workshop("one", namespace=namespace)
    manifest["metadata"] |= {
        "uid": "mine",
        "generation": 9,
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "resourceVersion": "77",
    }
    manifest["status"] = {"visitors": 5}
    made = (await http.post(collection(namespace), json=manifest)).json()
    assert made["metadata"]["uid"] not in ("", "mine")
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["resourceVersion"] != "77"
    assert made["metadata"]["creationTimestamp"] > "2020"
    assert "deletionTimestamp" not in made["metadata"]
    assert "status" not in made
    told = {
        "generation": 50,
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
    }
    patched = await http.patch(
        f"{collection(namespace)}/one", json={"metadata": told}, headers=MERGE
    )
    assert patched.json() == made


async def test_put_needs_the_current_version(http: httpx2.AsyncClient, namespace: str) -> None:
    made = await make(http, namespace)
    path = f"{collection(namespace)}/one"
    changed = {**made, "spec": {"size": 4}}
    stored = (await http.put(path, json=changed)).json()
    assert stored["metadata"]["generation"] == 2
    status(await http.put(path, json=changed), 409, "Conflict")
    same = await http.put(path, json=stored)
    assert same.json() == stored
    del changed["metadata"]["resourceVersion"]
    body = status(await http.put(path, json=changed), 422, "Invalid")
    assert body["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    changed["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    changed["metadata"]["uid"] = "another"
    status(await http.put(path, json=changed), 409, "Conflict")
    other = {**stored, "metadata": {**stored["metadata"], "name": "two"}}
    status(await http.put(path, json=other), 400, "BadRequest")
    status(await http.put(f"{collection(namespace)}/two", json=other), 404, "NotFound")


async def test_unconditional_put_where_the_kind_allows_it(
    http: httpx2.AsyncClient, namespace: str
) -> None:
    name = f"saw-{namespace}"
    await http.post(f"/apis/{GROUP}/v1/tools", json=tool(name))
    replaced = await http.put(f"/apis/{GROUP}/v1/tools/{name}", json=tool(name, 9))
    assert replaced.json()["spec"] == {"weight": 9}


async def test_status_writes_only_status(http: httpx2.AsyncClient, namespace: str) -> None:
    made = await make(http, namespace, size=2)
    path = f"{collection(namespace)}/one/status"
    labelled = {**made, "spec": {"size": 9}, "status": {"visitors": 1}}
    labelled["metadata"] = {**made["metadata"], "labels": {"a": "b"}}
    stored = (await http.put(path, json=labelled)).json()
    assert stored["spec"] == {"size": 2}
    assert stored["status"] == {"visitors": 1}
    assert "labels" not in stored["metadata"] or stored["metadata"]["labels"] == {}
    assert stored["metadata"]["generation"] == 1
    assert (await http.get(path)).json() == stored
    status(await http.delete(path), 405, "MethodNotAllowed")
    status(await http.get(f"{collection(namespace)}/one/scale"), 404, "NotFound")


async def test_delete_answers_preconditions_and_finalizers(
    http: httpx2.AsyncClient, namespace: str
) -> None:
    made = await make(http, namespace)
    path = f"{collection(namespace)}/one"

    async def delete(**options: Any) -> httpx2.Response:
        return await http.request("DELETE", path, json=options)

    status(await delete(preconditions={"uid": "other"}), 409, "Conflict")
    status(await delete(preconditions={"resourceVersion": "1"}), 409, "Conflict")
    status(await delete(propagationPolicy="Sometimes"), 422, "Invalid")
    status(await delete(dryRun=["Some"]), 422, "Invalid")
    status(await delete(gracePeriodSeconds="soon"), 400, "BadRequest")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await http.patch(path, json=held, headers=MERGE)
    dry = (await delete(dryRun=["All"])).json()
    assert dry["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in (await http.get(path)).json()["metadata"]
    gone = await delete(propagationPolicy="Foreground", gracePeriodSeconds=0)
    assert gone.json()["metadata"]["deletionTimestamp"]
    assert gone.json()["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await delete()).json() == gone.json()
    await http.patch(path, json={"metadata": {"finalizers": []}}, headers=MERGE)
    body = status(await http.get(path), 404, "NotFound")
    assert body["message"] == f'workshops.{GROUP} "one" not found'
    assert body["details"] == {"name": "one", "group": GROUP, "kind": "workshops"}
    await make(http, namespace)
    gone = await http.delete(path)
    assert gone.json()["status"] == "Success"
    assert gone.json()["details"]["uid"] not in ("", made["metadata"]["uid"])


async def test_delete_collection(http: httpx2.AsyncClient, namespace: str) -> None:
    for name in ("a", "b", "c"):
        await make(http, namespace, name, owner="eve" if name == "b" else "ann")
    chosen = await http.delete(f"{collection(namespace)}?fieldSelector=spec.owner%3Dann&dryRun=All")
    assert [item["metadata"]["name"] for item in chosen.json()["items"]] == ["a", "c"]
    await http.delete(f"{collection(namespace)}?fieldSelector=spec.owner%3Dann")
    left = (await http.get(collection(namespace))).json()["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]
    everywhere = await http.delete(f"/apis/{GROUP}/v1/workshops")
    status(everywhere, 405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({}, "metadata.name"),
        ({"name": "a", "labels": {"-bad": "x"}}, "metadata.labels"),
        ({"name": "a", "labels": {"a/b/c": "x"}}, "metadata.labels"),
        ({"name": "a", "labels": {"ok": "x" * 64}}, "metadata.labels"),
        ({"name": "a", "annotations": {"b@d": "x"}}, "metadata.annotations"),
        ({"name": "a", "annotations": {"big": "x" * 300_000}}, "metadata.annotations"),
        ({"name": "a", "finalizers": ["no spaces"]}, "metadata.finalizers"),
        (
            {"name": "a", "ownerReferences": [{"kind": "Tool"}]},
            "metadata.ownerReferences[0].apiVersion",
        ),
    ],
)
async def test_metadata_rules(
    http: httpx2.AsyncClient, namespace: str, metadata: Manifest, field: str
) -> None:
    manifest = {**workshop("a", namespace=namespace), "metadata": metadata}
    body = status(await http.post(collection(namespace), json=manifest), 422, "Invalid")
    assert field in {cause["field"] for cause in body["details"]["causes"]}
    assert body["details"]["kind"] == "Workshop"


async def test_owner_references_are_kept(http: httpx2.AsyncClient, namespace: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Tool", "name": "saw", "uid": "u1", "controller": True}
    manifest = workshop("one", namespace=namespace)
    manifest["metadata"]["ownerReferences"] = [owner]
    made = (await http.post(collection(namespace), json=manifest)).json()
    assert made["metadata"]["ownerReferences"] == [owner]


async def test_wrong_methods_and_unknown_paths(http: httpx2.AsyncClient, namespace: str) -> None:
    answer = await http.put(collection(namespace), json={})
    status(answer, 405, "MethodNotAllowed")
    assert answer.headers["allow"] == "DELETE, GET, POST"
    answer = await http.post(f"{collection(namespace)}/one", json={})
    assert answer.headers["allow"] == "DELETE, GET, PATCH, PUT"
    answer = await http.post(f"/apis/{GROUP}/v1/workshops", json={})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    answer = await http.post("/version")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    for path in (
        "/nothing", "/apis/none/v1", f"/apis/{GROUP}/v9/tools", f"/apis/{GROUP}/v1/none", "/api/v1/pods",
        f"/apis/{GROUP}/v1/namespaces/x/tools", f"/apis/{GROUP}/v1/workshops/one", "/openapi/v3/apis/none/v1",
        f"/apis/{GROUP}/v1/namespaces/x/workshops/a/b/c", f"/apis/{GROUP}/v1//tools", "/",
    ):  # fmt: skip
        status(await http.get(path), 404, "NotFound")


async def test_metadata_only_forms(http: httpx2.AsyncClient, namespace: str) -> None:
    made = await make(http, namespace)
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    answer = await http.get(f"{collection(namespace)}/one", headers={"Accept": one})
    assert (
        answer.headers["content-type"]
        == "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadata"
    )
    assert answer.json() == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
    many = "application/vnd.kubernetes.protobuf, application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listing = (await http.get(collection(namespace), headers={"Accept": many})).json()
    assert listing["kind"] == "PartialObjectMetadataList"
    assert [sorted(item) for item in listing["items"]] == [["apiVersion", "kind", "metadata"]]
    only_protobuf = {"Accept": "application/vnd.kubernetes.protobuf"}
    status(await http.get(collection(namespace), headers=only_protobuf), 406, "NotAcceptable")


async def test_tables_carry_what_was_asked_for(http: httpx2.AsyncClient, namespace: str) -> None:
    made = await make(http, namespace, size=3)
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    for include, wanted in (
        ("None", None),
        ("Object", made),
        ("Metadata", "PartialObjectMetadata"),
    ):
        path = f"{collection(namespace)}?includeObject={include}"
        table = (await http.get(path, headers=accept)).json()
        assert table["kind"] == "Table"
        assert [one["name"] for one in table["columnDefinitions"]] == [
            "Name",
            "Size",
            "Ready",
            "Owner",
            "Age",
        ]
        assert table["rows"][0]["cells"][:2] == ["one", 3]
        shown = table["rows"][0].get("object")
        assert (shown["kind"] if include == "Metadata" else shown) == wanted
    status(
        await http.get(f"{collection(namespace)}?includeObject=All", headers=accept),
        400,
        "BadRequest",
    )


async def test_bad_options(http: httpx2.AsyncClient, namespace: str) -> None:
    manifest = workshop("one", namespace=namespace)
    for query in ("dryRun=Yes", "fieldValidation=Hard", "fieldManager=" + "m" * 129):
        status(await http.post(f"{collection(namespace)}?{query}", json=manifest), 422, "Invalid")
    assert (await http.get(collection(namespace))).json()["items"] == []
    for query in (
        "limit=-1",
        "limit=x",
        "watch=maybe",
        "labelSelector=a%20b",
        "fieldSelector=spec.size",
    ):
        status(await http.get(f"{collection(namespace)}?{query}"), 400, "BadRequest")


async def test_everything_but_health_needs_a_user(api: Running) -> None:
    async with httpx2.AsyncClient(base_url=api.url, verify=False) as stranger:
        for path in ("/healthz", "/livez", "/readyz"):
            assert (await stranger.get(path)).text == "ok"
        for path in ("/version", "/apis", "/openapi/v3", collection("x"), "/nothing", "/"):
            answer = await stranger.get(path)
            status(answer, 401, "Unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
        api.missing["database"] = "no answer"
        try:
            unready = await stranger.get("/readyz")
        finally:
            api.missing.clear()
        assert unready.status_code == 503
        assert "database: no answer" in unready.text
        assert (await stranger.get("/livez")).status_code == 200


async def test_applying_to_nothing_needs_the_right_to_create(
    api: Running, http: httpx2.AsyncClient, namespace: str
) -> None:
    bob = {"Authorization": "Bearer bob-token", "Content-Type": "application/apply-patch+yaml"}
    path = f"{collection(namespace)}/one?fieldManager=bob"
    manifest = workshop("one", namespace=namespace, size=5)
    status(await http.patch(path, json=manifest, headers=bob), 403, "Forbidden")
    await make(http, namespace)
    refused = status(await http.patch(path, json=manifest, headers=bob), 409, "Conflict")
    assert refused["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    assert refused["details"]["causes"][0]["field"] == ".spec.size"
    forced = await http.patch(f"{path}&force=true", json=manifest, headers=bob)
    assert forced.json()["spec"] == {"size": 5}


async def test_null_is_absent(http: httpx2.AsyncClient, namespace: str) -> None:
    manifest = workshop(
        "one", namespace=namespace, owner=None, benches=[{"name": "a", "seats": None}]
    )
    manifest["metadata"]["creationTimestamp"] = None
    made = (await http.post(collection(namespace), json=manifest)).json()
    assert made["spec"] == {"size": 1, "benches": [{"name": "a"}]}
    operations = [{"op": "replace", "path": "/spec", "value": None}]
    headers = {"Content-Type": "application/json-patch+json"}
    patched = await http.patch(f"{collection(namespace)}/one", json=operations, headers=headers)
    assert patched.json()["spec"] == {"size": 1}


async def test_values_of_the_wrong_shape(http: httpx2.AsyncClient, namespace: str) -> None:
    manifest = workshop("one", namespace=namespace, benches={"name": "a"}, owner=["eve"], limits=3)
    manifest["status"] = "fine"
    body = status(await http.post(collection(namespace), json=manifest), 422, "Invalid")
    assert [cause["field"] for cause in body["details"]["causes"]] == [
        "spec.benches",
        "spec.owner",
        "spec.limits",
        "status",
    ]
    told = body["details"]["causes"][0]["message"]
    assert told == 'Invalid value: "object": spec.benches in body must be of type array: "object"'


async def test_defects_show_no_traceback_and_throttling_says_when(
    api: Running, http: httpx2.AsyncClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(kind: Kind, namespace: str | None, name: str) -> Manifest:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(api.storage, "get", broken)
    with capture_logs() as logged:
        answer = await http.get(f"{collection(namespace)}/one", headers={"X-Request-Id": "my-id"})
    assert [(one["log_level"], one["request_id"]) for one in logged] == [("error", "my-id")]
    body = status(answer, 500, "InternalError")
    assert "secret" not in answer.text
    assert "my-id" in body["message"]
    assert answer.headers["x-request-id"] == "my-id"

    async def busy(
        kind: Kind, namespace: str | None, name: str, change: Change, *, user: User, dry_run: bool
    ) -> Manifest:
        raise Throttled("slow down", retry_after_s=2.5)

    monkeypatch.setattr(api.storage, "write", busy)
    answer = await http.post(collection(namespace), json=workshop("one", namespace=namespace))
    assert status(answer, 429, "TooManyRequests")["details"]["retryAfterSeconds"] == 3
    assert answer.headers["retry-after"] == "3"

"""Lists over plain HTTP: pages, tokens, resourceVersions, long lists in pieces."""

import base64
import json
from pathlib import Path

import httpx2

from app.apiserver.kinds import Kind
from app.apiserver.storage import Storage, User
from app.core.manifests import Manifest
from tests.apiserver.running import Running, running
from tests.apiserver.test_http_bodies import collection, status
from tests.apiserver.toys import GROUP, WORKSHOP, workshop


async def fill(storage: Storage, kind: Kind, namespace: str, count: int) -> None:
    for number in range(count):
        manifest = workshop(f"w{number:04}", namespace=namespace, size=number)
        manifest["metadata"]["labels"] = {"odd": str(number % 2)}

        def change(old: Manifest | None, new: Manifest = manifest) -> Manifest:
            assert old is None
            return new

        await storage.write(
            kind, namespace, manifest["metadata"]["name"], change, user=User("test"), dry_run=False
        )


def names(answer: httpx2.Response) -> list[str]:
    return [item["metadata"]["name"] for item in answer.json()["items"]]


async def test_pages_are_complete_while_objects_come_and_go(
    api: Running, http: httpx2.AsyncClient, namespace: str
) -> None:
    await fill(api.storage, WORKSHOP, namespace, 10)
    path = collection(namespace)
    first = (await http.get(path, params={"limit": 4})).json()
    assert first["metadata"]["remainingItemCount"] == 6
    await http.delete(f"{path}/w0001")
    await http.delete(f"{path}/w0006")
    await http.post(path, json=workshop("w0004a", namespace=namespace))
    token = first["metadata"]["continue"]
    second = await http.get(path, params={"limit": 4, "continue": token})
    assert names(second) == ["w0004", "w0004a", "w0005", "w0007"]
    assert second.json()["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = await http.get(
        path, params={"limit": 4, "continue": second.json()["metadata"]["continue"]}
    )
    assert names(third) == ["w0008", "w0009"]
    assert "continue" not in third.json()["metadata"]


async def test_pages_with_a_selector(
    api: Running, http: httpx2.AsyncClient, namespace: str
) -> None:
    await fill(api.storage, WORKSHOP, namespace, 9)
    params = {"limit": "2", "labelSelector": "odd=1"}
    first = await http.get(collection(namespace), params=params)
    assert names(first) == ["w0001", "w0003"]
    assert "remainingItemCount" not in first.json()["metadata"]
    token = first.json()["metadata"]["continue"]
    second = await http.get(collection(namespace), params={**params, "continue": token})
    assert names(second) == ["w0005", "w0007"]
    assert "continue" not in second.json()["metadata"]


async def test_bad_and_expired_tokens(certificate: Path, namespace: str) -> None:
    headers = {"Authorization": "Bearer alice-token"}
    async with (
        running(certificate) as api,
        httpx2.AsyncClient(base_url=api.url, headers=headers, verify=False) as http,
    ):
        await fill(api.storage, WORKSHOP, namespace, 3)
        path = collection(namespace)
        token = (await http.get(path, params={"limit": 1})).json()["metadata"]["continue"]
        forged = base64.urlsafe_b64encode(json.dumps({"v": "x", "last": [1]}).encode()).decode()
        for bad in ("nonsense!", "e30", "W10", forged, "a" * 5000):
            status(await http.get(path, params={"limit": 1, "continue": bad}), 400, "BadRequest")
        await http.delete(f"{path}/w0002")
        assert names(await http.get(path, params={"continue": token})) == ["w0001"]
        api.storage.compact()
        status(await http.get(path, params={"limit": 1, "continue": token}), 410, "Expired")


async def test_resource_versions_of_lists(http: httpx2.AsyncClient, namespace: str) -> None:
    await http.post(collection(namespace), json=workshop("one", namespace=namespace))
    current = (await http.get(collection(namespace))).json()["metadata"]["resourceVersion"]

    async def ask(version: str, match: str = "") -> httpx2.Response:
        params = {"resourceVersion": version, **({"resourceVersionMatch": match} if match else {})}
        return await http.get(collection(namespace), params=params)

    for version, match in (("0", ""), (current, ""), (current, "Exact"), ("1", "NotOlderThan")):
        answer = await ask(version, match)
        assert answer.json()["metadata"]["resourceVersion"] == current
        assert names(answer) == ["one"]
    status(await ask("1", "Exact"), 410, "Expired")
    ahead = await ask(str(int(current) + 1000))
    assert "Too large resource version" in status(ahead, 504, "Timeout")["message"]
    assert ahead.headers["retry-after"] == "1"
    status(await ask(current, "Sometimes"), 422, "Invalid")
    status(await ask("", "Exact"), 422, "Invalid")
    status(await ask("abc"), 422, "Invalid")


async def test_long_lists_come_in_pieces_and_whole(
    api: Running, http: httpx2.AsyncClient, namespace: str
) -> None:
    await fill(api.storage, WORKSHOP, namespace, 1234)
    long_list = collection(namespace)
    answer = await http.get(long_list)
    assert "content-length" not in answer.headers
    body = answer.json()
    assert (body["kind"], body["apiVersion"]) == ("WorkshopList", f"{GROUP}/v1")
    assert [item["spec"]["size"] for item in body["items"]] == list(range(1234))
    table = await http.get(
        long_list, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    )
    assert [row["cells"][1] for row in table.json()["rows"]] == list(range(1234))

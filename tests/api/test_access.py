"""Who gets in, and what they may do: tokens, roles, and no door left open."""

import re
from collections.abc import Iterator

import httpx2
import pytest
from starlette.routing import BaseRoute, Route

from app.store import tokens
from tests.api.running import BASE, TESTER, Corner, Worker
from tests.apiserver.running import Kubectl
from tests.unit.intake import samples

QUEUES = f"{BASE}/clusterqueues"
OPEN = {"/healthz", "/livez", "/readyz"}
WEBHOOKS = {"/webhooks/mutate", "/webhooks/validate"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")


async def asked(worker: Worker, token: str, path: str = QUEUES) -> int:
    async with worker.client(token) as client:
        return (await client.get(path)).status_code


def paths(routes: list[BaseRoute]) -> Iterator[str]:
    """Every route, with something plausible in place of its parameters."""
    for route in routes:
        assert isinstance(route, Route), f"{route} has no test here"
        yield re.sub(
            r"\{(\w+)[^}]*\}",
            lambda found: {
                "group": "kueue.x-k8s.io",
                "version": "v1beta2",
                "namespace": "default",
                "path": "apis/kueue.x-k8s.io/v1beta2",
                "rest": "clusterqueues",
            }[found[1]],
            route.path,
        )


async def test_every_route_but_health_and_webhooks_wants_a_token(worker: Worker) -> None:
    found = list(paths(worker.door.app.routes))
    assert set(found) >= OPEN | WEBHOOKS | {QUEUES, "/version", "/openapi/v3", "/apis"}
    guarded = [path for path in found if path not in OPEN | WEBHOOKS]
    guarded += [
        f"{BASE}/namespaces/default/workloads",
        f"{BASE}/namespaces/default/workloads/x/status",
        f"{QUEUES}?watch=true",
        f"{QUEUES}/x",
        "/",
        "/docs",
        "/openapi.json",
        "/metrics",
        "/healthz/",
        "/readyz/x",
        "/webhooks",
        "/webhooks/mutate/",
        "//healthz",
    ]
    async with worker.client("") as client:
        for path in guarded:
            for method in METHODS:
                answer = await client.request(method, path)
                assert answer.status_code == 401, (method, path, answer.status_code)
                assert answer.headers["www-authenticate"] == "Bearer"
                if method != "HEAD":
                    assert answer.json()["reason"] == "Unauthorized", (method, path)


async def test_open_doors_say_nothing(worker: Worker) -> None:
    async with worker.client("") as client:
        for path in sorted(OPEN):
            answer = await client.get(path)
            assert (answer.status_code, answer.text) == (200, "ok")
            assert (await client.post(path)).status_code == 405
        for path in sorted(WEBHOOKS):
            assert (await client.get(path)).status_code in (401, 405)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Basic YWRtaW46YWRtaW4=",
        "Bearer admin",
        "Bearer sluice__",
        "Bearer sluice_000000000000_",
        "Bearer sluice_%27--_x",
        "Bearer " + "x" * 8000,
        "Bearer sluice_\xe9_\xff",
        "Bearer null",
    ],
)
async def test_what_is_no_token(worker: Worker, header: str) -> None:
    async with worker.client("") as client:
        answer = await client.get(QUEUES, headers={b"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert "sluice kubeconfig" in answer.json()["message"]


async def test_a_token_with_a_letter_changed(worker: Worker) -> None:
    text = await worker.token("changed")
    assert await asked(worker, text) == 200
    for wrong in (
        text[:-1],
        text + "a",
        text.swapcase(),
        text[:-1] + ("A" if text[-1] != "A" else "B"),
    ):
        assert await asked(worker, wrong) == 401


async def test_scheme_is_not_case_sensitive(worker: Worker) -> None:
    async with worker.client("") as client:
        for scheme in ("bearer", "BEARER"):
            headers = {"Authorization": f"{scheme}  {worker.admin}"}
            assert (await client.get(QUEUES, headers=headers)).status_code == 200


async def test_a_revoked_token_works_for_ten_seconds_at_most(worker: Worker) -> None:
    text = await worker.token("leaver")
    assert await asked(worker, text) == 200
    async with worker.database.write(TESTER) as tx:
        await tokens.revoke(tx, "leaver")
    worker.clock.pass_s(10)
    assert await asked(worker, text) == 401


async def test_a_token_ends_at_its_end(worker: Worker) -> None:
    """Also while the verdict about it is still remembered."""
    text = await worker.token("guest", lives_s=60)
    worker.clock.pass_s(55)
    assert await asked(worker, text) == 200
    worker.clock.pass_s(6)
    assert await asked(worker, text) == 401
    worker.clock.pass_s(20)
    assert await asked(worker, text) == 401


async def test_viewers_read_and_cannot_write(
    corner: Corner, kubectl: Kubectl, viewer: Kubectl
) -> None:
    queue = corner.placed(samples.cluster_queue(), "queue")
    name = queue["metadata"]["name"]
    await kubectl("create", "-f", "-", stdin=queue)
    before = await corner.worker.state()
    assert name in (await viewer("get", "cq")).out
    await viewer("describe", "cq", name)
    await viewer("explain", "cq")
    other = corner.placed(samples.cluster_queue(), "other")
    refused = await viewer.attempt("create", "-f", "-", stdin=other)
    assert (
        'User "viewer-person" cannot create clusterqueues.kueue.x-k8s.io: its role is viewer'
        in refused.err
    )
    assert "(Forbidden)" in refused.err
    for how in (
        ("label", "cq", name, "a=b"),
        ("delete", "cq", name),
        ("delete", "cq", "--all"),
        ("patch", "cq", name, "--type=merge", "-p", "{}"),
        ("patch", "cq", name, "--subresource=status", "--type=merge", "-p", "{}"),
        ("label", "cq", name, "a=b", "--dry-run=server"),
    ):
        answer = await viewer.attempt(*how)
        assert answer.code == 1
        assert "its role is viewer" in answer.err
    local = corner.placed(samples.local_queue(), "main")
    applied = await viewer.attempt("apply", "--server-side", "-f", "-", stdin=local)
    assert f'in the namespace "{corner.namespace}": its role is viewer' in applied.err
    assert await corner.worker.state() == before


async def test_without_a_token_kubectl_says_so(corner: Corner) -> None:
    refused = await corner.as_("wrong").attempt("get", "cq")
    assert refused.code == 1
    assert "logged in" in refused.err or "Unauthorized" in refused.err


async def test_tokens_are_not_in_answers(http: httpx2.AsyncClient, worker: Worker) -> None:
    """Neither ours nor a wrong one that was shown to us."""
    secret = worker.admin.split("_", 2)[2]
    for path in (QUEUES, "/version", f"{QUEUES}/none", "/nowhere"):
        answer = await http.get(path)
        assert secret not in answer.text
        assert secret not in str(answer.headers)

"""What does the client put on the wire, and what does it make of the answers?"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from app import errors as app_errors
from app.kube import errors
from app.kube.client import KubeClient, Selection, WatchStart
from app.kube.config import ClusterConfig, Limits
from app.kube.credentials import TokenFile
from app.kube.resources import JOBS, NODES
from tests.kube.api import answers, serving


@dataclass
class Wire:
    """A server that notes what it gets and answers from a list, the last answer for ever."""

    answers: list[Callable[[web.Request], Awaitable[web.StreamResponse]]]
    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append((request.method, request.raw_path, dict(request.headers), body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def says(
    document: Any, status: int = 200
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    return answers(status, json.dumps(document), "application/json")


@asynccontextmanager
async def talking(wire: Wire, **config: Any) -> AsyncIterator[KubeClient]:
    async with (
        serving(wire) as url,
        KubeClient(ClusterConfig(server=url, **config)) as client,
    ):
        yield client


OK = {"kind": "Job", "metadata": {"name": "j"}}


async def test_paths_queries_and_content_types_of_every_verb() -> None:
    wire = Wire([says(OK)])
    async with talking(wire) as client:
        await client.get(JOBS, "ns", "j")
        await client.create(JOBS, "ns", OK, dry_run=True)
        await client.replace(JOBS, "ns", OK)
        await client.patch(JOBS, "ns", "j", {"a": None}, subresource="status")
        await client.patch(JOBS, "ns", "j", [], patch_type="json")
        await client.apply(JOBS, "ns", OK, force=True)
        await client.delete(JOBS, "ns", "j", uid="u", resource_version="7")
        await client.get(NODES, None, "n")
    jobs = "/apis/batch/v1/namespaces/ns/jobs"
    assert [(method, path) for method, path, _, _ in wire.seen] == [
        ("GET", f"{jobs}/j"),
        ("POST", f"{jobs}?fieldManager=sluice&dryRun=All"),
        ("PUT", f"{jobs}/j?fieldManager=sluice"),
        ("PATCH", f"{jobs}/j/status?fieldManager=sluice"),
        ("PATCH", f"{jobs}/j?fieldManager=sluice"),
        ("PATCH", f"{jobs}/j?fieldManager=sluice&force=true"),
        ("DELETE", f"{jobs}/j"),
        ("GET", "/api/v1/nodes/n"),
    ]
    assert [headers.get("Content-Type") for _, _, headers, _ in wire.seen] == [
        None,
        "application/json",
        "application/json",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/apply-patch+yaml",
        "application/json",
        None,
    ]
    assert json.loads(wire.seen[3][3]) == {"a": None}
    assert json.loads(wire.seen[6][3])["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert all(headers["User-Agent"].startswith("sluice/") for _, _, headers, _ in wire.seen)


async def test_a_name_cannot_leave_its_path_segment() -> None:
    wire = Wire([says(OK)])
    async with talking(wire) as client:
        await client.get(JOBS, "../kube-system", "a/../../secrets?x#y")
    assert wire.seen[0][1] == (
        "/apis/batch/v1/namespaces/..%2Fkube-system/jobs/a%2F..%2F..%2Fsecrets%3Fx%23y"
    )


async def test_list_follows_pages_and_names_its_items() -> None:
    def page(name: str, token: str = "") -> Any:
        metadata = {"resourceVersion": "5", "continue": token}
        items = [{"metadata": {"name": name}}]
        return says(
            {"kind": "JobList", "apiVersion": "batch/v1", "metadata": metadata, "items": items}
        )

    wire = Wire([page("a", "t&1"), page("b")])
    async with talking(wire) as client:
        found = await client.list(JOBS, Selection(namespace="ns", labels="a=b,c!=d"), limit=1)
    assert found.resource_version == "5"
    assert found.items == [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"}},
    ]
    assert "labelSelector=a%3Db,c!%3Dd" in wire.seen[0][1]
    assert "continue=t%261" in wire.seen[1][1]


async def test_list_begins_again_when_its_snapshot_is_gone() -> None:
    first = says({"kind": "JobList", "metadata": {"continue": "t"}, "items": [{"metadata": {}}]})
    whole = says({"kind": "JobList", "metadata": {"resourceVersion": "9"}, "items": None})
    wire = Wire([first, says({"reason": "Expired"}, 410), whole])
    async with talking(wire) as client:
        found = await client.list(JOBS)
    assert (found.items, found.resource_version) == ([], "9")


STATUS = {
    "kind": "Status",
    "message": "said so",
    "reason": "Whatever",
    "details": {"causes": [{"field": "spec.x", "message": "bad", "reason": "FieldValueInvalid"}]},
}


@pytest.mark.parametrize(
    ("code", "reason", "kind", "family", "retryable"),
    [
        (400, "BadRequest", errors.KubeBadRequest, app_errors.BadRequest, False),
        (401, "Unauthorized", errors.KubeUnauthorized, app_errors.Unauthorized, False),
        (403, "Forbidden", errors.KubeForbidden, app_errors.Forbidden, False),
        (404, "NotFound", errors.KubeNotFound, app_errors.NotFound, False),
        (405, "MethodNotAllowed", errors.KubeBadRequest, app_errors.BadRequest, False),
        (409, "Conflict", errors.KubeConflict, app_errors.Conflict, False),
        (409, "AlreadyExists", errors.KubeAlreadyExists, app_errors.AlreadyExists, False),
        (410, "Expired", errors.KubeGone, app_errors.Gone, False),
        (413, "RequestEntityTooLarge", errors.KubeTooLarge, app_errors.TooLarge, False),
        (422, "Invalid", errors.KubeInvalid, app_errors.Invalid, False),
        (429, "TooManyRequests", errors.KubeThrottled, app_errors.Throttled, True),
        (500, "InternalError", errors.KubeUnavailable, app_errors.Unavailable, True),
        (504, "Timeout", errors.KubeUnavailable, app_errors.Unavailable, True),
        (302, "", errors.KubeUnavailable, app_errors.Unavailable, True),
    ],
)
async def test_answers_become_errors(
    code: int, reason: str, kind: type[Any], family: type[Any], retryable: bool
) -> None:
    async with talking(Wire([says({**STATUS, "reason": reason}, code)])) as client:
        with pytest.raises(kind, match="said so") as caught:
            await client.get(JOBS, "ns", "j")
    error = caught.value
    assert isinstance(error, family)
    assert (error.answer.code, error.answer.reason, error.retryable) == (code, reason, retryable)
    assert [cause.path for cause in error.causes] == ["spec.x"]


async def test_an_explanation_that_comes_in_pieces_is_read_whole() -> None:
    async def slowly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=422, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        text = json.dumps(STATUS).encode()
        for piece in (text[:20], text[20:]):
            await response.write(piece)
            await asyncio.sleep(0.05)
        return response

    async with talking(Wire([slowly])) as client:
        with pytest.raises(errors.KubeInvalid, match="said so") as caught:
            await client.get(JOBS, "ns", "j")
    assert [cause.path for cause in caught.value.causes] == ["spec.x"]


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (answers(429, "", "text/plain", Retry_After="7"), 7.0),
        (says({"details": {"retryAfterSeconds": 3}}, 429), 3.0),
        (answers(503, "", "text/plain", Retry_After="soon"), None),
    ],
)
async def test_the_wished_wait_is_carried(fault: Any, wait: float | None) -> None:
    async with talking(Wire([fault])) as client:
        with pytest.raises(errors.KubeError) as caught:
            await client.get(JOBS, "ns", "j")
    assert caught.value.retry_after_s == wait


@pytest.mark.parametrize(
    "fault",
    [
        answers(200, "<html>login</html>"),
        answers(200, "{broken", "application/json"),
        answers(200, "[]", "application/json"),
        answers(502, "<html>" + "x" * 5000 + "</html>"),
    ],
)
async def test_what_is_no_kubernetes_answer_is_unavailability(fault: Any) -> None:
    async with talking(Wire([fault])) as client:
        with pytest.raises(errors.KubeUnavailable) as caught:
            await client.get(JOBS, "ns", "j")
    assert len(caught.value.message) < 500
    assert "\n" not in caught.value.message


async def test_a_call_that_hangs_ends_in_time() -> None:
    async def hang(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        raise AssertionError

    async with talking(Wire([hang]), limits=Limits(timeout_s=0.2)) as client:
        with pytest.raises(errors.KubeUnavailable, match="in time"):
            await client.get(JOBS, "ns", "j")


async def test_an_answer_beyond_the_cap_is_not_kept() -> None:
    wire = Wire([says({"x": "y" * 10_000})])
    async with talking(wire, limits=Limits(body_bytes=5_000)) as client:
        with pytest.raises(errors.KubeUnavailable, match="longer than 5000"):
            await client.get(JOBS, "ns", "j")


async def test_nobody_listening_is_unavailability() -> None:
    async with serving(says(OK)) as url:
        pass
    async with KubeClient(ClusterConfig(server=url)) as client:
        with pytest.raises(errors.KubeUnavailable, match="connection failed"):
            await client.get(JOBS, "ns", "j")


async def test_after_a_401_a_rotated_token_is_read_and_the_call_made_once_more(
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    async def refuse(request: web.Request) -> web.StreamResponse:
        token.write_text("new\n")
        return await says({"message": "expired"}, 401)(request)

    wire = Wire([says(OK), refuse, says(OK), says({}, 401)])
    async with talking(wire, credentials=TokenFile(token)) as client:
        await client.get(JOBS, "ns", "j")
        await client.get(JOBS, "ns", "j")
        with pytest.raises(errors.KubeUnauthorized):
            await client.get(JOBS, "ns", "j")
    assert [headers["Authorization"] for _, _, headers, _ in wire.seen] == [
        "Bearer old",
        "Bearer old",
        "Bearer new",
        "Bearer new",
        "Bearer new",
    ]


async def test_calls_are_paced() -> None:
    loop = asyncio.get_running_loop()
    async with talking(Wire([says(OK)]), limits=Limits(qps=20, burst=2)) as client:
        begun = loop.time()
        await asyncio.gather(*(client.get(JOBS, "ns", "j") for _ in range(8)))
        assert loop.time() - begun >= 0.29


async def test_a_watch_names_its_start_and_is_not_bounded_by_the_call_timeout() -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for _ in range(4):
            await asyncio.sleep(0.1)
            await response.write(b"x\n")
        return response

    wire = Wire([slow])
    start = WatchStart(resource_version="12", timeout_s=300, silence_s=5)
    async with (
        talking(wire, limits=Limits(timeout_s=0.2)) as client,
        client.watch(JOBS, Selection(namespace="ns"), start) as chunks,
    ):
        read = b"".join([chunk async for chunk in chunks])
    assert read == b"x\n" * 4
    assert wire.seen[0][1] == (
        "/apis/batch/v1/namespaces/ns/jobs"
        "?watch=true&allowWatchBookmarks=true&resourceVersion=12&timeoutSeconds=300"
    )


async def test_a_closed_client_says_so() -> None:
    client = KubeClient(ClusterConfig(server="http://127.0.0.1:1"))
    with pytest.raises(app_errors.Misconfigured):
        await client.get(JOBS, "ns", "j")

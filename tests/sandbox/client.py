"""A plain HTTP client of a sandbox, and the real kubectl, for tests."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from app.sandbox.cluster import Sandbox

KUBECTL = Path(__file__).parents[2] / ".venv" / "bin" / "kubectl"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"

Object = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str]

    def ok(self) -> Any:
        assert self.status < 300, self.body
        return self.body

    @property
    def causes(self) -> list[tuple[str, str]]:
        found = self.body.get("details", {}).get("causes", [])
        return [(cause["field"], cause["message"]) for cause in found]


class Client:
    def __init__(
        self, url: str, session: aiohttp.ClientSession, tls: ssl.SSLContext | None = None
    ) -> None:
        self._url = url
        self._session = session
        self._tls: ssl.SSLContext | bool = tls or True

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        media: str = "application/json",
        **query: str,
    ) -> Answer:
        async with self._session.request(
            method,
            self._url + path,
            params=query,
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": media},
            ssl=self._tls,
            timeout=aiohttp.ClientTimeout(total=10),
        ) as response:
            text = await response.text()
            answer = json.loads(text) if text else None
            return Answer(response.status, answer, dict(response.headers))

    async def get(self, path: str, **query: str) -> Any:
        return (await self.call("GET", path, **query)).ok()

    async def create(self, path: str, body: Any, **query: str) -> Any:
        return (await self.call("POST", path, body, **query)).ok()

    async def patch(self, path: str, body: Any, **query: str) -> Answer:
        return await self.call("PATCH", path, body, "application/merge-patch+json", **query)

    async def items(self, path: str, **query: str) -> list[Object]:
        return list((await self.get(path, **query))["items"])

    async def until(self, path: str, holds: Callable[[Any], bool], timeout_s: float = 8) -> Any:
        """Get again and again until it holds; the last answer shows what it was if it never does."""
        end = asyncio.get_running_loop().time() + timeout_s
        while True:
            answer = await self.call("GET", path)
            if holds(answer.body):
                return answer.body
            assert asyncio.get_running_loop().time() < end, f"never held for {answer.body}"
            await asyncio.sleep(0.01)

    async def until_gone(self, path: str) -> None:
        await self.until(path, lambda body: body.get("code") == 404)

    @asynccontextmanager
    async def watching(self, path: str, **query: str) -> AsyncIterator[AsyncIterator[Object]]:
        async with self._session.get(
            self._url + path,
            params={"watch": "true", **query},
            ssl=self._tls,
            timeout=aiohttp.ClientTimeout(total=20),
        ) as response:
            assert response.status == 200, await response.text()
            yield _lines(response)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    async for line in response.content:
        yield json.loads(line)


@asynccontextmanager
async def client_of(sandbox: Sandbox) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {sandbox.token}"}
    authority = sandbox.certificate_authority
    tls = None if authority is None else ssl.create_default_context(cadata=authority.decode())
    async with aiohttp.ClientSession(headers=headers) as session:
        yield Client(sandbox.url, session, tls)


@dataclass(frozen=True)
class Kubectl:
    kubeconfig: Path

    async def run(self, *arguments: str, stdin: str = "") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            str(KUBECTL),
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.kubeconfig.parent / 'cache'}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate(stdin.encode())
        return process.returncode or 0, out.decode()

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        code, out = await self.run(*arguments, stdin=stdin)
        assert code == 0, out
        return out


def condition(manifest: Object, kind: str) -> str | None:
    """The status of a condition; None if there is none."""
    status = manifest.get("status")
    conditions = (status.get("conditions") or []) if isinstance(status, dict) else []
    return next((one["status"] for one in conditions if one["type"] == kind), None)


def is_true(kind: str) -> Callable[[Object], bool]:
    return lambda manifest: condition(manifest, kind) == "True"


def resources(requests: dict[str, str]) -> Object:
    """Extended resources need a limit that equals the request."""
    limits = {name: text for name, text in requests.items() if "/" in name}
    return {"requests": requests, **({"limits": limits} if limits else {})}


def job(name: str = "train", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Job of one pod that runs for a second of simulated time, unless told otherwise."""
    requests = spec.pop("requests", {"cpu": "1"})
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "busybox:1", "resources": resources(requests)}],
        **spec.pop("pod", {}),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {
            "template": {
                "metadata": {"annotations": {"sluice.dev/run-seconds": "1", **(annotations or {})}},
                "spec": pod,
            },
            **spec,
        },
    }


def pod(name: str = "alone", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    requests = spec.pop("requests", {"cpu": "1"})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}, **spec.pop("metadata", {})},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {"name": "main", "image": "busybox:1", "resources": resources(requests)}
            ],
            **spec,
        },
    }


FOREVER = {"sluice.dev/run-seconds": "forever"}
FAILING = {"sluice.dev/fail": "true"}

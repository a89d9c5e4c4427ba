"""How does one HTTP call to a cluster go out, and when does it count as failed?

One connection pool per cluster with keep-alive probes, so that a peer that vanished without a word is noticed. No
redirects, no cookies, no proxy from the environment. Status and content type are checked before a byte of the body is
believed; bodies are read up to a cap. A 401 makes the credentials forget what they know and the call is tried once
more, since it was not carried out; nothing else is ever tried twice here.
"""

import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp
from aiohttp import ClientTimeout
from yarl import URL

from app.errors import Misconfigured
from app.kube import errors
from app.kube.config import ClusterConfig
from app.kube.pacing import TokenBucket

_ERROR_BYTES = 256 * 1024
_PROBE_AFTER_S = 30
_PROBE_EVERY_S = 10
_PROBES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    timeout: ClientTimeout | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport:
    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._bucket = TokenBucket(config.limits.qps, config.limits.burst)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> Self:
        limits = self._config.limits
        context = self._config.ssl_context()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=limits.connections,
                ssl=True if context is None else context,
                socket_factory=_probed_socket,
            ),
            timeout=ClientTimeout(total=limits.timeout_s, sock_connect=limits.connect_timeout_s),
            headers={
                "User-Agent": self._config.user_agent,
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )
        return self

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def read(self, call: Call) -> bytes:
        async with self._success(call) as response:
            with translated(call):
                return await _body(response, self._config.limits.body_bytes, call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body in the pieces it arrives in."""
        async with self._success(call) as response:
            yield _chunks(response, call)

    @asynccontextmanager
    async def _success(self, call: Call) -> AsyncIterator[aiohttp.ClientResponse]:
        response = await self._send(call)
        if response.status == 401 and self._config.credentials.forget():
            response.release()
            response = await self._send(call)
        async with response:
            if not 200 <= response.status < 300:
                with translated(call):
                    body = await _beginning(response)
                raise errors.from_answer(response.status, response.headers, body, str(call))
            if response.content_type != "application/json":
                raise errors.not_kubernetes(str(call), response.status, response.content_type)
            yield response

    async def _send(self, call: Call) -> aiohttp.ClientResponse:
        if self._session is None:
            raise Misconfigured("The cluster client is not open.")
        await self._bucket.take()
        headers: dict[str, str] = {}
        authorization = await self._config.credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        options: dict[str, Any] = {"timeout": call.timeout} if call.timeout else {}
        with translated(call):
            return await self._session.request(
                call.method,
                self._url(call),
                data=call.body,
                headers=headers,
                allow_redirects=False,
                server_hostname=self._config.server_name,
                **options,
            )

    def _url(self, call: Call) -> URL:
        return URL(self._config.server + call.path, encoded=True).with_query(call.query)


@contextmanager
def translated(call: Call) -> Iterator[None]:
    """Turn what aiohttp and the socket raise into `KubeUnavailable`."""
    try:
        yield
    except TimeoutError as error:
        raise errors.unanswered(str(call), "no answer in time") from error
    except (aiohttp.ClientError, OSError) as error:
        raise errors.unanswered(str(call), f"the connection failed: {error}") from error


async def _body(response: aiohttp.ClientResponse, limit: int, call: Call) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise errors.unanswered(str(call), f"the answer is longer than {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """As much of an error's body as is worth reading; it may come in pieces."""
    body = b""
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _ERROR_BYTES:
            break
    return body


async def _chunks(response: aiohttp.ClientResponse, call: Call) -> AsyncIterator[bytes]:
    while True:
        with translated(call):
            chunk = await response.content.readany()
        if not chunk:
            return
        yield chunk


def _probed_socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    connection = socket.socket(family, kind, protocol)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    probes = {
        "TCP_KEEPIDLE": _PROBE_AFTER_S,
        "TCP_KEEPINTVL": _PROBE_EVERY_S,
        "TCP_KEEPCNT": _PROBES,
    }
    for name, value in probes.items():
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection

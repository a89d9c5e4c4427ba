"""How does an ASGI application get a port inside a loop that is already running, and lose it quickly?

uvicorn's own server takes over signals and needs some tenths of a second to stop; here its HTTP protocol is used
directly. `close` gives answers that are on their way a moment, then cuts every connection.
"""

import asyncio
import ssl
from typing import Self

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from app.sandbox.faults.http import TransportProtocol

_BACKLOG = 1024
_GRACE_S = 0.3


class HttpServer:
    def __init__(self, app: ASGIApp) -> None:
        self._config = uvicorn.Config(
            app,
            http=TransportProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            timeout_keep_alive=600,
        )
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> Self:
        self._config.load()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._protocol, host=host, port=port, backlog=_BACKLOG, ssl=tls
        )
        return self

    @property
    def port(self) -> int:
        if self._server is None:
            raise RuntimeError("the server is not open")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=_GRACE_S)
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
        await self._server.wait_closed()

    def _protocol(self) -> TransportProtocol:
        return TransportProtocol(
            config=self._config, server_state=self._state, app_state={}, _loop=None
        )

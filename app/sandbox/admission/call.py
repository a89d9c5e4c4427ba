"""How is an admission webhook called?

One POST over HTTPS, verified against the configuration's own ``caBundle``, within its own timeout. Services do not
exist here, so a ``service`` reference is looked up among the addresses that the sandbox was given.
"""

import asyncio
import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import orjson

from app.core.manifests import Manifest
from app.sandbox.admission.match import Hook


class CallFailed(Exception):
    """The webhook could not be asked, or answered with an error; the message says why."""


class WebhookClient:
    """`services` maps (namespace, name) to a base URL such as ``https://127.0.0.1:9443``."""

    def __init__(self, services: Mapping[tuple[str, str], str] | None = None) -> None:
        self._services = services or {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._session: aiohttp.ClientSession | None = None

    async def call(self, hook: Hook, body: Manifest) -> bytes:
        config: Mapping[str, Any] = hook.spec.get("clientConfig") or {}
        url = f"{self._url(config)}?timeout={hook.timeout_s}s"
        try:
            async with self._open_session().post(
                url,
                data=orjson.dumps(body),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                ssl=self._context(str(config.get("caBundle") or "")),
                timeout=aiohttp.ClientTimeout(total=hook.timeout_s),
            ) as response:
                answer: bytes = await response.read()
                if response.status != 200:
                    text = answer.decode("utf-8", "replace")[:200]
                    raise CallFailed(f"an error on the server ({text!r}) has prevented the request")
                return answer
        except TimeoutError as error:
            raise CallFailed(f'Post "{url}": context deadline exceeded') from error
        except aiohttp.ClientError as error:
            raise CallFailed(f'Post "{url}": {_told(error)}') from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # let the TLS transports say goodbye

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self._session

    def _url(self, config: Mapping[str, Any]) -> str:
        if config.get("url"):
            return str(config["url"])
        service = config.get("service") or {}
        where = (service.get("namespace") or "", service.get("name") or "")
        base = self._services.get(where)
        if base is None:
            raise CallFailed(f'service "{where[1]}" not found in namespace "{where[0]}"')
        parts, path = urlsplit(base), str(service.get("path") or "/")
        return urlunsplit((parts.scheme, parts.netloc, path, "", ""))

    def _context(self, bundle: str) -> ssl.SSLContext:
        context = self._contexts.get(bundle)
        if context is None:
            try:
                pem = base64.b64decode(bundle, validate=True).decode("ascii") or None
                context = ssl.create_default_context(cadata=pem)
            except (ssl.SSLError, ValueError, binascii.Error) as error:
                raise CallFailed(f"unable to load root certificates: {error}") from error
            self._contexts[bundle] = context
        return context


def _told(error: aiohttp.ClientError) -> str:
    """Word a failure as Go does, as far as people match on it."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        why = os.strerror(number).lower() if number else str(error.os_error)
        return f"dial tcp {error.host}:{error.port}: connect: {why}"
    return str(error)

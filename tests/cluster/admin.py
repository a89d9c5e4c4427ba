"""How do tests look into a cluster and change it, without the code under test?

A small client for the API server, made of the standard library only: the tests of our own client must not depend on
that client being right, nor on a program that may not be installed. It is synchronous, keeps one connection, and knows
nothing about kinds except what the server's discovery tells it. For tests and demonstrations only.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tests.cluster.certs import KeyPair

#: An API object, as JSON has it.
Object = dict[str, Any]

_TIMEOUT_S = 30.0
_POLL_S = 0.05
_SHOWN_CHARACTERS = 3000
#: How a kept connection looks after the server has gone. A time-out is not among them: the server is still there, and
#: may be working on the request.
_BROKEN = (ConnectionError, ssl.SSLError, http.client.HTTPException)


class ApiError(Exception):
    """The server said no; ``status`` is the HTTP status and ``reason`` the machine-readable word beside it."""

    def __init__(self, request: str, status: int, body: bytes) -> None:
        """Read what can be read from the answer to ``request``."""
        try:
            answer = json.loads(body)
        except ValueError:
            answer = {}
        self.status = status
        self.reason = str(answer.get("reason", ""))
        message = answer.get("message") or body.decode(errors="replace")
        super().__init__(f"{request}: {status} {self.reason}: {message}")


class Admin:
    """A client with one identity. Safe to share between threads, which then take turns."""

    def __init__(self, server: str, ca_path: Path, identity: KeyPair) -> None:
        """Prepare to talk to ``server``; no connection is made yet."""
        self._address = urlsplit(server).netloc
        self._tls = ssl.create_default_context(cafile=str(ca_path))
        self._tls.load_cert_chain(identity.certificate, identity.key)
        self._lock = threading.Lock()
        self._connection: http.client.HTTPSConnection | None = None
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}

    def is_ready(self) -> bool:
        """Tell whether the server answers and has finished starting."""
        try:
            return self._send("GET", "/readyz", None, {})[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str, **query: str) -> Object:
        """Read an object, or a list of them, at an absolute API path."""
        return self._request("GET", path, None, query)

    def post(self, path: str, body: Object, **query: str) -> Object:
        """Create ``body`` in the collection at ``path``."""
        return self._request("POST", path, body, query)

    def put(self, path: str, body: Object, **query: str) -> Object:
        """Replace the object at ``path``."""
        return self._request("PUT", path, body, query)

    def patch(
        self, path: str, body: Object | list[Object], kind: str = "merge-patch", **query: str
    ) -> Object:
        """Change the object at ``path``; ``kind`` is merge-patch, json-patch, strategic-merge-patch or apply-patch."""
        suffix = "yaml" if kind == "apply-patch" else "json"
        return self._request("PATCH", path, body, query, f"application/{kind}+{suffix}")

    def delete(self, path: str, body: Object | None = None, **query: str) -> Object:
        """Delete the object at ``path``, with what depends on it; ``body`` may hold other options."""
        return self._request(
            "DELETE", path, {"propagationPolicy": "Background"} | (body or {}), query
        )

    def create(self, manifest: Object) -> Object:
        """Create an object of any kind that the server knows."""
        return self.post(self.path_of(manifest, named=False), manifest)

    def apply(self, manifest: Object, manager: str = "tests") -> Object:
        """Create or change an object of any kind by server-side apply, taking over fields that others own."""
        return self.patch(
            self.path_of(manifest), manifest, "apply-patch", fieldManager=manager, force="true"
        )

    def path_of(self, manifest: Object, *, named: bool = True) -> str:
        """Return the path of the object that ``manifest`` describes, or of its collection if not ``named``."""
        metadata = manifest["metadata"]
        version = manifest["apiVersion"]
        plural, namespaced = self._resource(version, manifest["kind"])
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        scope = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
        return f"{root}{scope}/{plural}" + (f"/{quote(metadata['name'])}" if named else "")

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> Object:
        """Create a namespace and wait until pods may be created there.

        That is once the controller manager has made the default service account: until then the server refuses every
        pod, and a job controller that meets the refusal backs off for seconds.
        """
        made = self.post(
            "/api/v1/namespaces", {"metadata": {"name": name, "labels": dict(labels or {})}}
        )
        self.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default")
        return made

    def wait_for(
        self,
        path: str,
        condition: Callable[[Object], bool] = bool,
        timeout_s: float = _TIMEOUT_S,
        **query: str,
    ) -> Object:
        """Read ``path`` until the answer meets ``condition``, and return that answer.

        An object that does not exist (yet) meets no condition. On time-out the last answer is part of the message.
        """
        deadline = time.monotonic() + timeout_s
        last: object = None
        while time.monotonic() < deadline:
            try:
                answer = self.get(path, **query)
            except ApiError as error:
                if error.status != http.HTTPStatus.NOT_FOUND:
                    raise
                last = error
            else:
                if condition(answer):
                    return answer
                last = answer.get("status") or answer
            time.sleep(_POLL_S)
        shown = str(last)[:_SHOWN_CHARACTERS]
        raise TimeoutError(
            f"{path} did not become as expected within {timeout_s:g} s; last seen: {shown}"
        )

    def wait_for_condition(self, path: str, kind: str, timeout_s: float = _TIMEOUT_S) -> Object:
        """Wait until the object at ``path`` has the condition ``kind`` with status True."""
        return self.wait_for(path, lambda found: has_condition(found, kind), timeout_s)

    def wait_until_gone(self, path: str, timeout_s: float = _TIMEOUT_S) -> None:
        """Wait until there is no object at ``path``."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                self.get(path)
            except ApiError as error:
                if error.status == http.HTTPStatus.NOT_FOUND:
                    return
                raise
            time.sleep(_POLL_S)
        raise TimeoutError(f"{path} was still there after {timeout_s:g} s")

    def close(self) -> None:
        """Drop the connection; the next request makes a new one."""
        with self._lock:
            self._disconnect()

    def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._resources:
            listed = self.get(f"/apis/{version}" if "/" in version else f"/api/{version}")
            self._resources |= {
                (version, name): found for name, found in _main_resources(listed["resources"])
            }
        if (version, kind) not in self._resources:
            raise LookupError(f"the server knows no kind {kind} in {version}")
        return self._resources[version, kind]

    def _request(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, str],
        content_type: str = "application/json",
    ) -> Object:
        target = f"{path}?{urlencode(query)}" if query else path
        encoded = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": content_type}
        status, answer = self._send(method, target, encoded, headers)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(f"{method} {target}", status, answer)
        decoded: Object = json.loads(answer)
        return decoded

    def _send(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        with self._lock:
            reused = self._connection is not None
            try:
                return self._exchange(method, target, body, headers)
            except _BROKEN:
                # A kept connection breaks whenever the server has been restarted in between; that is no news.
                if not reused:
                    raise
            return self._exchange(method, target, body, headers)

    def _exchange(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._address, timeout=_TIMEOUT_S, context=self._tls
            )
        try:
            self._connection.request(method, target, body, dict(headers))
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def has_condition(found: Object, kind: str, status: str = "True") -> bool:
    """Tell whether an object has the condition ``kind`` with the given status."""
    conditions = found.get("status", {}).get("conditions") or []
    return any(each["type"] == kind and each["status"] == status for each in conditions)


def _main_resources(resources: Iterable[Object]) -> Iterable[tuple[str, tuple[str, bool]]]:
    """Leave out sub-resources, whose kind is often that of something else (a Scale, an Eviction)."""
    return (
        (each["kind"], (each["name"], each["namespaced"]))
        for each in resources
        if "/" not in each["name"]
    )

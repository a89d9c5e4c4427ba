"""What goes into the Authorization header of a call, now?

Three sources: nothing or a fixed token; a file, read again every minute because projected tokens rotate; a kubeconfig's
exec or auth-provider plug-in, run by kubernetes-asyncio, which is imported only then (it costs 110 MB). After a 401
the client calls `forget` and asks once more. Plug-ins start programs, so only a kubeconfig that lies on this machine's
own disk may name one; an uploaded kubeconfig never reaches this module with one.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from app.errors import Misconfigured, Unavailable

_FILE_REREAD_S = 60.0
_PLUGIN_RERUN_S = 240.0
_PLUGIN_TIMEOUT_S = 60.0
_TOKEN_BYTES = 64 * 1024


class Credentials(Protocol):
    async def authorization(self) -> str | None: ...

    def forget(self) -> bool:
        """Drop what is remembered. Whether asking again can give something else."""
        ...


class FixedCredentials:
    """A bearer token from the configuration, or none (client certificates need no header)."""

    def __init__(self, token: str | None = None) -> None:
        self._header = f"Bearer {token}" if token else None

    async def authorization(self) -> str | None:
        return self._header

    def forget(self) -> bool:
        return False


class TokenFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._header: str | None = None
        self._read_at = 0.0

    async def authorization(self) -> str | None:
        now = asyncio.get_running_loop().time()
        if self._header is None or now - self._read_at > _FILE_REREAD_S:
            self._header = f"Bearer {self._read()}"
            self._read_at = now
        return self._header

    def forget(self) -> bool:
        self._header = None
        return True

    def _read(self) -> str:
        try:
            with self._path.open(encoding="ascii") as file:
                token = file.read(_TOKEN_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"The token file {self._path} cannot be read: {error}.") from error
        if not token:
            raise Unavailable(f"The token file {self._path} is empty.")
        return token


class Plugin:
    """An exec or auth-provider plug-in of a local kubeconfig. One run at a time."""

    def __init__(self, user: Mapping[str, Any], folder: Path) -> None:
        self._user = dict(user)
        self._folder = folder
        self._header: str | None = None
        self._run_at = 0.0
        self._lock = asyncio.Lock()

    async def authorization(self) -> str | None:
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._header is None or now - self._run_at > _PLUGIN_RERUN_S:
                self._header = await self._run()
                self._run_at = now
            return self._header

    def forget(self) -> bool:
        self._header = None
        return True

    async def _run(self) -> str:
        # Importing it takes seconds and holds the loop: done once, in a thread.
        module = await asyncio.to_thread(_import_loader)
        loader = module.KubeConfigLoader(
            config_dict=_alone(self._user), config_base_path=str(self._folder)
        )
        configuration = type.__call__(module.Configuration)
        try:
            async with asyncio.timeout(_PLUGIN_TIMEOUT_S):
                await loader.load_and_set(configuration)
        except Exception as error:
            raise Unavailable(f"The kubeconfig's credential plug-in failed: {error}") from error
        header = configuration.api_key.get("BearerToken")
        if not header:
            raise Misconfigured("The kubeconfig's credential plug-in gave no token.")
        return str(header)


def _import_loader() -> Any:
    from kubernetes_asyncio.config import kube_config  # noqa: PLC0415

    return kube_config


def _alone(user: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig with nothing but the plug-in, so that the library touches neither keys nor certificates."""
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://plugin.invalid"}}],
        "users": [{"name": "c", "user": dict(user)}],
    }

"""Sluice's API as tests see it: the real kubectl for what people do, and plain HTTP for looking often."""

import base64
import json
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import yaml

from tests.cluster.admin import Object

KUBECTL = Path(sys.executable).with_name("kubectl")
GROUP = "/apis/kueue.x-k8s.io/v1beta2"


class Kubectl:
    """kubectl with one kubeconfig; a command that fails fails the test, unless it is `refused`."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, *arguments: str, stdin: object = None) -> str:
        ended = self._run(arguments, stdin)
        assert ended.returncode == 0, f"kubectl {' '.join(arguments)}: {ended.stderr}"
        return ended.stdout

    def refused(self, *arguments: str, stdin: object = None) -> str:
        """What it says to a person whose command does not succeed."""
        ended = self._run(arguments, stdin)
        assert ended.returncode != 0, ended.stdout
        return ended.stderr

    def _run(self, arguments: tuple[str, ...], stdin: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [KUBECTL, "--kubeconfig", self.kubeconfig, *arguments],
            input=None if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def apply(self, *manifests: Object) -> str:
        return self("apply", "-f", "-", stdin=listed(manifests))


class Front:
    """One person's way in."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubectl = Kubectl(kubeconfig)
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._http = httpx2.Client(
            base_url=cluster["server"],
            headers={"Authorization": f"Bearer {user['token']}"},
            verify=ssl.create_default_context(cadata=authority),
        )

    def find(self, plural: str, name: str, namespace: str | None = None) -> Object | None:
        answer = self._http.get(_path(plural, namespace, name))
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        found: Object = answer.json()
        return found

    def items(self, plural: str, namespace: str | None = None) -> list[Object]:
        answer = self._http.get(_path(plural, namespace))
        assert answer.status_code == 200, answer.text
        found: list[Object] = answer.json()["items"]
        return found

    def is_ready(self) -> bool:
        """The API answers, and so does what is behind it."""
        try:
            return bool(self._http.get("/readyz").status_code == 200)
        except httpx2.TransportError:
            return False

    def close(self) -> None:
        self._http.close()


def listed(manifests: Any) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": list(manifests)}


def _path(plural: str, namespace: str | None, name: str = "") -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{GROUP}{scope}/{plural}" + (f"/{name}" if name else "")

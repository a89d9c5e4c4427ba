"""The file that tells a client where the cluster is and who the client is.

Certificates and keys are written into the file itself, so that it can be handed on as one piece of text.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.certs import KeyPair


def write_kubeconfig(path: Path, server: str, ca: Path, identity: KeyPair) -> Path:
    """Write a kubeconfig with one context; it is JSON, which every reader of YAML understands."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "test",
                "cluster": {"server": server, "certificate-authority-data": _encoded(ca)},
            }
        ],
        "users": [
            {
                "name": "user",
                "user": {
                    "client-certificate-data": _encoded(identity.certificate),
                    "client-key-data": _encoded(identity.key),
                },
            }
        ],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()

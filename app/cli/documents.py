"""`sluice openapi`: the OpenAPI documents of the Kubernetes face, made from the models that serve it.

One file a group and version, as the server gives them under ``/openapi/v3``, with keys in order and a line a value, so
that a change of the API shows as a change of few lines. ``openapi/`` holds the committed copy.
"""

import json
from pathlib import Path

import orjson

from app.api.kinds import KINDS
from app.apiserver.openapi import OpenApi
from app.apiserver.registry import Registry
from app.errors import Misconfigured


def write(folder: Path) -> None:
    documents = contents()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in documents.items():
            (folder / name).write_text(text)
    except OSError as error:
        raise Misconfigured(f"cannot write into {folder}: {error.strerror}") from error
    for name in documents:
        print(folder / name)


def contents() -> dict[str, str]:
    """File names and texts, in order."""
    openapi = OpenApi(Registry(KINDS))
    return {
        f"{path.removeprefix('apis/').replace('/', '_')}.json": _text(openapi.document(path)[0])
        for path in sorted(openapi.index()["paths"])
    }


def _text(document: bytes) -> str:
    return json.dumps(orjson.loads(document), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

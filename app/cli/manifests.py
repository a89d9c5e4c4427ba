"""Reads manifest files as kubectl does: YAML or JSON, several documents in one, folders too.

Every fault names the file and the document. Duplicate keys are refused, which YAML libraries let pass.
"""

from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from app.core.manifests import Manifest
from app.errors import Misconfigured

SUFFIXES = {".yaml", ".yml", ".json"}


class _Loader(yaml.CSafeLoader):
    """The safe loader, less silent duplicates."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key.value!r}", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read(paths: Iterable[Path]) -> list[Manifest]:
    """All objects of `paths`, in order; a folder gives its files by name. Raises Misconfigured."""
    return [manifest for path in paths for file in _files(path) for manifest in _documents(file)]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    if not files:
        raise Misconfigured(f"{path} holds no manifests ({', '.join(sorted(SUFFIXES))})")
    return files


def _documents(file: Path) -> Iterator[Manifest]:
    try:
        documents = list(yaml.load_all(file.read_text(), _Loader))
    except OSError as error:
        raise Misconfigured(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{file} is not valid YAML: {' '.join(str(error).split())}") from error
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        if (
            not isinstance(document, dict)
            or not document.get("kind")
            or not document.get("apiVersion")
        ):
            raise Misconfigured(
                f"{file}, document {number}: expected an object with apiVersion and kind"
            )
        if document["kind"] == "List":
            yield from document.get("items", [])
        else:
            yield document

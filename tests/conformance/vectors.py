"""Finding and reading vector files: ``<family>.jsonl`` or ``<family>.jsonl.gz``, one scenario a line."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Scenario = dict[str, Any]


class UnknownVectors(Exception):
    """There is no such folder or family; the message names what there is."""


def families(folder: Path) -> dict[str, Path]:
    """The vector files of a folder, by family."""
    if not folder.is_dir():
        raise UnknownVectors(f"{folder} is not a folder.")
    found = {
        path.name.removesuffix(".gz").removesuffix(".jsonl"): path
        for path in sorted(folder.iterdir())
        if path.name.endswith((".jsonl", ".jsonl.gz"))
    }
    if not found:
        raise UnknownVectors(f"{folder} holds no .jsonl or .jsonl.gz files.")
    return found


def choose(folder: Path, names: list[str]) -> dict[str, Path]:
    """The named families, or all of them."""
    found = families(folder)
    missing = [name for name in names if name not in found]
    if missing:
        raise UnknownVectors(
            f"{folder} has no family {', '.join(missing)}; it has {', '.join(found)}."
        )
    return {name: found[name] for name in names} if names else found


def scenarios(path: Path) -> Iterator[Scenario]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    for line in text.splitlines():
        if line.strip():
            yield json.loads(line)

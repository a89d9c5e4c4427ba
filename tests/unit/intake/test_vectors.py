"""Every object of the conformance vectors is one that Kueue accepted, so we accept it.

The vectors lie beside the repository (or where SLUICE_VECTORS says); without them there is nothing to check.
"""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.intake.kinds import DEFINITIONS
from tests.unit.intake.samples import faults

_BESIDE = Path(__file__).parents[4] / "shared" / "vectors"
_FOLDER = Path(os.environ.get("SLUICE_VECTORS", _BESIDE))
_FILES = sorted(_FOLDER.glob("*.jsonl*")) if _FOLDER.is_dir() else []


def objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in text.splitlines():
        scenario = json.loads(line)
        steps = [step["object"] for step in scenario.get("steps", ()) if "object" in step]
        for found in [*scenario.get("objects", ()), *steps]:
            if found["kind"] in DEFINITIONS:
                yield scenario["id"], found


@pytest.mark.skipif(not _FILES, reason="no conformance vectors here")
@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.name.split(".")[0])
def test_the_objects_of_a_family_are_accepted(path: Path) -> None:
    refused = [(scenario, faults(found)) for scenario, found in objects(path) if faults(found)]
    assert refused == []

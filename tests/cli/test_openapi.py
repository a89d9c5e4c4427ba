"""The committed OpenAPI documents are those of this version, and say what clients look for in them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.cli import documents
from app.errors import Misconfigured

COMMITTED = Path(__file__).parents[2] / "openapi"
NAMES = ["kueue.x-k8s.io_v1beta1.json", "kueue.x-k8s.io_v1beta2.json"]


def test_the_committed_copy_is_this_version() -> None:
    made = documents.contents()
    assert sorted(file.name for file in COMMITTED.iterdir()) == sorted(made) == NAMES
    for name, text in made.items():
        committed = (COMMITTED / name).read_text()
        assert committed == text, f"openapi/{name} is not of this version: run `make openapi`"


def test_written_twice_is_the_same(tmp_path: Path) -> None:
    for _ in range(2):
        documents.write(tmp_path / "new")
        assert sorted(file.name for file in (tmp_path / "new").iterdir()) == NAMES
    assert (tmp_path / "new" / NAMES[1]).read_text() == documents.contents()[NAMES[1]]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="cannot write into"):
        documents.write(tmp_path / "file" / "below")


@pytest.mark.parametrize("name", NAMES)
def test_the_document_is_whole(name: str) -> None:
    document = json.loads((COMMITTED / name).read_text())
    assert document["openapi"] == "3.0.0"
    schemas = document["components"]["schemas"]
    for reference in set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(document))):
        assert reference.removeprefix("#/components/schemas/") in schemas, reference
    paths = document["paths"]
    assert len([path for path in paths if path.endswith("/{name}")]) == 8
    for path, operations in paths.items():
        if not path.endswith(("/{name}", "/status")):
            continue
        queried = {one["name"] for one in operations["patch"]["parameters"]}
        assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= queried, path
        kind = operations["patch"]["x-kubernetes-group-version-kind"]["kind"]
        assert f"io.x-k8s.kueue.{name[:-5].rpartition('_')[2]}.{kind}" in schemas


def test_every_field_of_ours_is_described() -> None:
    """`kubectl explain` prints it."""
    document = json.loads((COMMITTED / NAMES[1]).read_text())
    for name, schema in document["components"]["schemas"].items():
        if name.endswith("List"):
            continue
        assert schema.get("description"), name
        for field, below in schema["properties"].get("spec", {}).get("properties", {}).items():
            assert described(below), f"{name}.spec.{field}"


def described(schema: dict[str, Any]) -> bool:
    return bool(schema.get("description"))

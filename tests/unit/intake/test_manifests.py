"""Manifests as users of Kueue have them are taken unchanged: nothing they wrote is altered or lost."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.core.manifests import Manifest, parse
from tests.unit.intake.samples import prepared

MANIFESTS: list[Manifest] = list(
    yaml.safe_load_all(Path(__file__).with_name("manifests.yaml").read_text())
)


def is_kept(written: Any, found: Any) -> bool:
    """Is everything that was written still there, whatever was added?"""
    if isinstance(written, dict):
        return isinstance(found, dict) and all(
            name in found and is_kept(value, found[name]) for name, value in written.items()
        )
    if isinstance(written, list) and isinstance(found, list):
        return len(written) <= len(found) and all(map(is_kept, written, found))
    return bool(written == found) and type(written) is type(found)


@pytest.mark.parametrize(
    "manifest", MANIFESTS, ids=lambda manifest: f"{manifest['kind']}-{manifest['metadata']['name']}"
)
def test_a_manifest_is_taken_as_it_is(manifest: Manifest) -> None:
    found = prepared(manifest)
    assert is_kept(manifest, found)
    assert parse(found) == parse(manifest)


def test_every_kind_is_among_them() -> None:
    assert len({manifest["kind"] for manifest in MANIFESTS}) == 8

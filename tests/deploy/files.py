"""The deployment files, read as the programs that use them would."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "deploy" / "manifests"
KUBECTL = str(Path(sys.executable).with_name("kubectl"))

Object = dict[str, Any]


def compose() -> Object:
    read: Object = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return read


def rendered() -> dict[str, Object]:
    """By kind: every kind occurs once, which is checked here."""
    text = subprocess.run(
        [KUBECTL, "kustomize", str(MANIFESTS)], capture_output=True, text=True, check=True
    ).stdout
    objects = [each for each in yaml.safe_load_all(text) if each]
    by_kind = {each["kind"]: each for each in objects}
    assert len(by_kind) == len(objects)
    return by_kind


def pod_specs() -> dict[str, Object]:
    objects = rendered()
    return {kind: objects[kind]["spec"]["template"]["spec"] for kind in ("Deployment", "Job")}

"""SLUICE_CONFIG names a file, and what is wrong with it is one sentence."""

from pathlib import Path

import pytest

from app import bootstrap
from app.errors import Misconfigured
from app.settings import Settings

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"


def settings(monkeypatch: pytest.MonkeyPatch, file: Path) -> Settings:
    monkeypatch.setenv("SLUICE_CONFIG", str(file))
    return Settings.load()


def test_the_file_becomes_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "featureGates: {PartialAdmission: false}\n")
    rules = bootstrap.policy(settings(monkeypatch, file))
    assert not rules.partial_admission
    assert rules.never_overbook
    assert rules.pods_ready is not None


def test_without_a_file_there_is_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_CONFIG", raising=False)
    assert bootstrap.policy(Settings.load()).pods_ready is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read"),
        ("a: [", "not valid YAML"),
        ("", "apiVersion"),
        (HEAD + "kind: Configuration\n", "given twice: kind"),
        (HEAD + "colour: red\n", 'unknown field "colour"'),
        ("- a\n", "not a map"),
    ],
)
def test_a_bad_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, message: str
) -> None:
    file = tmp_path / "config.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(Misconfigured, match=message):
        bootstrap.policy(settings(monkeypatch, file))

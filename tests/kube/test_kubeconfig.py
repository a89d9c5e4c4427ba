"""Is a kubeconfig read as its owner meant it, and is a hostile one refused before it can do anything?"""

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.errors import Invalid, Misconfigured, Unavailable
from app.kube.config import ClusterConfig, in_cluster
from app.kube.credentials import FixedCredentials, Plugin, TokenFile
from app.kube.kubeconfig import load, parse, parse_untrusted


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def document(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "there", "context": {"cluster": "other", "user": "u"}},
        ],
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": "https://10.0.0.1:6443/",
                    "certificate-authority-data": data("CA"),
                    **(cluster or {}),
                },
            },
            {"name": "other", "cluster": {"server": "https://other.example:443"}},
        ],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
    }


def write(tmp_path: Path, content: dict[str, Any] | str) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


async def test_token_authority_and_namespace(tmp_path: Path) -> None:
    config = load(write(tmp_path, document()))
    assert (config.server, config.name, config.namespace) == (
        "https://10.0.0.1:6443",
        "here",
        "team",
    )
    assert config.certificate_authority == b"CA"
    assert await config.credentials.authorization() == "Bearer t"


def test_another_context(tmp_path: Path) -> None:
    config = load(write(tmp_path, document()), "there")
    assert (config.server, config.namespace) == ("https://other.example:443", "default")


async def test_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    for name in ("ca", "crt", "key", "tok"):
        (tmp_path / name).write_text(name.upper())
    cluster = {"certificate-authority-data": "", "certificate-authority": "ca"}
    user = {"client-certificate": "crt", "client-key": str(tmp_path / "key"), "tokenFile": "tok"}
    config = load(write(tmp_path, document(cluster, user)))
    assert (config.certificate_authority, config.client_certificate, config.client_key) == (
        b"CA",
        b"CRT",
        b"KEY",
    )
    assert await config.credentials.authorization() == "Bearer TOK"


def test_secrets_do_not_show() -> None:
    user = {"token": "canary-token", "client-key-data": data("canary-key")}
    config = parse(document(user=user))
    assert "canary" not in repr(config)
    assert "CA" not in repr(config).replace("ClusterConfig", "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{a: [", "not YAML"),
        ("just text", "no mapping"),
        ("\x00", "not YAML"),
        ({**document(), "current-context": ""}, "no current-context"),
        ({**document(), "current-context": "nowhere"}, "no context 'nowhere'; it has: here, there"),
        ({**document(), "clusters": []}, "no cluster 'c'; it has: none"),
        ({**document(), "clusters": 7}, "clusters are not a list"),
        ({**document(), "users": [{"name": "u"}]}, "user 'u' is empty"),
        (document({"server": "10.0.0.1:6443"}), "no usable server"),
        (document({"certificate-authority-data": "***"}), "not base64"),
        (
            document({"certificate-authority-data": "", "certificate-authority": "no"}),
            "no cannot be read",
        ),
        (document({"insecure-skip-tls-verify": True}), "must be allowed explicitly"),
        (document(user={"username": "u", "password": "p"}), "password"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        load(write(tmp_path, content))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot be read: No such file"):
        load(tmp_path / "none")


def test_insecure_only_on_request(tmp_path: Path) -> None:
    path = write(
        tmp_path, document({"insecure-skip-tls-verify": True, "certificate-authority-data": ""})
    )
    assert load(path, allow_insecure=True).insecure


def test_a_broken_certificate_is_a_clear_error() -> None:
    with pytest.raises(Misconfigured, match="certificate or key of cluster here"):
        parse(document()).ssl_context()


PLUGIN = """#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}'
echo run >> "$(dirname "$0")/runs"
"""


async def test_an_exec_plugin_of_a_local_file_is_run_and_its_token_kept(tmp_path: Path) -> None:
    program = tmp_path / "plugin.sh"
    program.write_text(PLUGIN)
    program.chmod(0o755)
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}
    config = load(write(tmp_path, document(user={"exec": command})))
    assert isinstance(config.credentials, Plugin)
    assert not (tmp_path / "runs").exists(), "reading the file must not start anything"
    assert await config.credentials.authorization() == "Bearer from-plugin"
    assert await config.credentials.authorization() == "Bearer from-plugin"
    assert (tmp_path / "runs").read_text() == "run\n"
    assert config.credentials.forget()
    await config.credentials.authorization()
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


async def test_a_failing_plugin_is_unavailability(tmp_path: Path) -> None:
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}
    config = load(write(tmp_path, document(user={"exec": command})))
    with pytest.raises(Unavailable, match="plug-in failed"):
        await config.credentials.authorization()


async def test_a_token_file_is_read_again_when_told_to_forget(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFile(path)
    assert await credentials.authorization() == "Bearer one"
    path.write_text("two")
    assert await credentials.authorization() == "Bearer one"
    assert credentials.forget()
    assert await credentials.authorization() == "Bearer two"
    credentials.forget()
    path.write_text("")
    with pytest.raises(Unavailable, match="empty"):
        await credentials.authorization()
    path.unlink()
    with pytest.raises(Unavailable, match="cannot be read"):
        await credentials.authorization()


async def test_in_a_pod(tmp_path: Path) -> None:
    for name, text in (("token", "tok"), ("ca.crt", "CA"), ("namespace", "sluice")):
        (tmp_path / name).write_text(text)
    place = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    config = in_cluster(place, tmp_path)
    assert (config.server, config.namespace) == ("https://[fd00::1]:443", "sluice")
    assert config.certificate_authority == b"CA"
    assert await config.credentials.authorization() == "Bearer tok"
    with pytest.raises(Misconfigured, match="Not running in a pod"):
        in_cluster({}, tmp_path)
    with pytest.raises(Misconfigured, match="no service account token"):
        in_cluster(place, tmp_path / "none")


def uploaded(content: dict[str, Any]) -> ClusterConfig:
    return parse_untrusted(yaml.safe_dump(content).encode())


async def test_an_upload_of_plain_data_is_accepted() -> None:
    user = {"client-certificate-data": data("CRT"), "client-key-data": data("KEY")}
    config = uploaded(document({"tls-server-name": "api"}, user))
    assert (config.client_certificate, config.client_key, config.server_name) == (
        b"CRT",
        b"KEY",
        "api",
    )
    assert isinstance(config.credentials, FixedCredentials)
    assert not config.insecure


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (document(user={"exec": {"command": "touch"}}), "users[0].user.exec"),
        (document(user={"auth-provider": {"name": "gcp"}}), "users[0].user.auth-provider"),
        (document(user={"tokenFile": "/etc/passwd"}), "users[0].user.tokenFile"),
        (document(user={"client-key": "/etc/shadow"}), "users[0].user.client-key"),
        (document(user={"username": "u", "password": "p"}), "users[0].user.username"),
        (document(user={"as": "system:admin"}), "users[0].user.as"),
        (document(user={"token": ["t"]}), "users[0].user.token"),
        (
            document({"certificate-authority": "/etc/x"}),
            "clusters[0].cluster.certificate-authority",
        ),
        (
            document({"insecure-skip-tls-verify": True}),
            "clusters[0].cluster.insecure-skip-tls-verify",
        ),
        (document({"proxy-url": "http://x"}), "clusters[0].cluster.proxy-url"),
        (document({"server": "http://10.0.0.1"}), "clusters[].cluster.server"),
        (document({"server": "file:///etc/passwd"}), None),
        (document({"server": "https://u:p@10.0.0.1"}), "clusters[].cluster.server"),
        (document({"server": "https://10.0.0.1/?a=b"}), "clusters[].cluster.server"),
        (document({"server": ["https://10.0.0.1"]}), "clusters[0].cluster.server"),
        (document({"certificate-authority-data": "***"}), None),
        ({**document(), "extensions": []}, "extensions"),
        ({**document(), "users": {"u": {}}}, "users"),
        ({**document(), "users": ["u"]}, "users[0]"),
        ({**document(), "users": [{"name": "u", "user": None}]}, "users[0].user"),
        ({**document(), "current-context": ["here"]}, None),
    ],
)
def test_a_hostile_upload_is_refused_and_nothing_happens(
    content: dict[str, Any], path: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("an upload opened a file or started a program")

    text = yaml.safe_dump(content).encode()
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", forbidden)
        patch.setattr(Path, "open", forbidden)
        patch.setattr(Path, "read_bytes", forbidden)
        patch.setattr(subprocess, "Popen", forbidden)
        with pytest.raises(Invalid) as caught:
            parse_untrusted(text)
    assert path is None or path in [cause.path for cause in caught.value.causes]


BOMB = b"a: &a [x,x]\n" + b"".join(
    b"%c: &%c [*%c,*%c]\n" % (after, after, before, before)
    for before, after in zip(b"abcdefghijkl", b"bcdefghijklm", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        b"!!python/object/apply:os.system [id]",
        b"a: !!binary aGk=",
        b"[" * 5000,
        b"a: " * 5000,
        b"- x\n" * 100_000,
        b"\xff\xfe\x00",
        b"",
        b"[]",
        b"a: 2001-99-99",
    ],
)
def test_hostile_yaml_is_refused(text: bytes) -> None:
    with pytest.raises(Invalid):
        parse_untrusted(text)

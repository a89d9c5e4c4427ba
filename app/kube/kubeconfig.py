"""What does a kubeconfig say about one cluster?

Two readers that must never be confused. `load` and `parse` are for kubeconfigs that whoever runs Sluice wrote: they may
name files and credential plug-ins. `parse_untrusted` is for one that came in over the network: a list of allowed
fields, data only, https only, verified TLS only, so that no upload can read a file or start a program here. It opens
nothing and runs nothing; which addresses are acceptable is for the caller to decide, who knows the network.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from app.errors import FieldError, Invalid, Misconfigured
from app.kube.config import ClusterConfig
from app.kube.credentials import Credentials, FixedCredentials, Plugin, TokenFile

_UNTRUSTED_BYTES = 256 * 1024
_UNTRUSTED_DEPTH = 32
_UNTRUSTED_TOKENS = 20_000
_OPENING = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLUGINS = ("exec", "auth-provider")


def load(path: Path, context: str | None = None, *, allow_insecure: bool = False) -> ClusterConfig:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise Misconfigured(f"The kubeconfig {path} cannot be read: {error.strerror}.") from error
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Misconfigured(f"The kubeconfig {path} is not YAML: {_one_line(error)}.") from error
    if not isinstance(document, dict):
        raise Misconfigured(f"The kubeconfig {path} holds no mapping of clusters and users.")
    return parse(document, context, folder=path.parent, allow_insecure=allow_insecure)


def parse(
    document: Mapping[str, Any],
    context: str | None = None,
    *,
    folder: Path = Path(),
    allow_insecure: bool = False,
) -> ClusterConfig:
    """Read a kubeconfig of our own. Relative paths in it start at `folder`."""
    name = context or document.get("current-context")
    if not name:
        raise Misconfigured("The kubeconfig has no current-context; name one.")
    chosen = _entry(document, "contexts", "context", str(name))
    cluster = _entry(document, "clusters", "cluster", str(chosen.get("cluster") or ""))
    user = _entry(document, "users", "user", str(chosen["user"])) if chosen.get("user") else {}
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    if insecure and not allow_insecure:
        raise Misconfigured(
            f"Context {name} asks to skip TLS verification; that must be allowed explicitly."
        )
    return ClusterConfig(
        server=_server(cluster.get("server"), f"cluster of context {name}"),
        name=str(name),
        namespace=str(chosen.get("namespace") or "default"),
        credentials=_credentials(user, folder),
        client_certificate=_material(user, "client-certificate", folder),
        client_key=_material(user, "client-key", folder),
        certificate_authority=_material(cluster, "certificate-authority", folder),
        server_name=cluster.get("tls-server-name"),
        insecure=insecure,
    )


def _entry(document: Mapping[str, Any], section: str, field: str, name: str) -> Mapping[str, Any]:
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise Misconfigured(f"The kubeconfig's {section} are not a list.")
    named = {
        entry["name"]: entry for entry in entries if isinstance(entry, dict) and "name" in entry
    }
    if name not in named:
        known = ", ".join(sorted(str(key) for key in named)) or "none"
        raise Misconfigured(f"The kubeconfig has no {field} {name!r}; it has: {known}.")
    body = named[name].get(field)
    if not isinstance(body, dict):
        raise Misconfigured(f"The kubeconfig's {field} {name!r} is empty.")
    return body


def _server(value: Any, where: str) -> str:
    parts = urlsplit(str(value or ""))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misconfigured(f"The {where} has no usable server address: {value!r}.")
    return str(value).rstrip("/")


def _credentials(user: Mapping[str, Any], folder: Path) -> Credentials:
    if user.get("tokenFile"):
        return TokenFile(folder / str(user["tokenFile"]))
    if user.get("token"):
        return FixedCredentials(str(user["token"]))
    if any(user.get(field) for field in _PLUGINS):
        return Plugin({field: user[field] for field in _PLUGINS if user.get(field)}, folder)
    if user.get("username"):
        raise Misconfigured("The kubeconfig uses a password, which no apiserver accepts any more.")
    return FixedCredentials()


def _material(holder: Mapping[str, Any], field: str, folder: Path) -> bytes | None:
    """A certificate or key, inline or in a file; inline wins, as with kubectl."""
    inline = holder.get(f"{field}-data")
    if inline:
        return _decoded(
            inline, lambda: Misconfigured(f"The kubeconfig's {field}-data is not base64.")
        )
    if not holder.get(field):
        return None
    path = folder / str(holder[field])
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misconfigured(f"The {field} {path} cannot be read: {error.strerror}.") from error


def _decoded(value: Any, refusal: Callable[[], Exception]) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise refusal() from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


_ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        {"apiVersion", "kind", "clusters", "users", "contexts", "current-context", "preferences"}
    ),
    "cluster": frozenset({"server", "certificate-authority-data", "tls-server-name"}),
    "user": frozenset({"token", "client-certificate-data", "client-key-data"}),
    "context": frozenset({"cluster", "user", "namespace"}),
}


def parse_untrusted(text: bytes) -> ClusterConfig:
    """Read an uploaded kubeconfig, or refuse it with the path of every field that it may not have."""
    document = _plain_yaml(text)
    causes = list(_forbidden(document, "", ""))
    for section, field in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
        causes += _section_faults(document, section, field)
    if causes:
        raise Invalid("The kubeconfig holds what an uploaded one may not hold.", causes)
    try:
        config = parse(document)
    except Misconfigured as error:
        raise Invalid(error.message) from error
    return _checked(config)


def _plain_yaml(text: bytes) -> dict[str, Any]:
    if len(text) > _UNTRUSTED_BYTES:
        raise Invalid(f"The kubeconfig is longer than {_UNTRUSTED_BYTES} bytes.")
    try:
        _refuse_tricks(text)
        document = yaml.load(text, _Loader)  # noqa: S506  (a safe loader, in C where there is one)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise Invalid("The kubeconfig is not YAML.") from error
    if not isinstance(document, dict):
        raise Invalid("The kubeconfig holds no mapping of clusters and users.")
    return document


def _refuse_tricks(text: bytes) -> None:
    """Read only the tokens, which builds nothing: names for other parts, types, depth and sheer number end it."""
    depth = 0
    for count, token in enumerate(yaml.scan(text, _Loader)):
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken | yaml.TagToken):
            raise Invalid("The kubeconfig uses YAML anchors, aliases or tags.")
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if depth > _UNTRUSTED_DEPTH or count > _UNTRUSTED_TOKENS:
            raise Invalid("The kubeconfig is nested too deeply or has too many parts.")


def _forbidden(body: Mapping[Any, Any], kind: str, path: str) -> list[FieldError]:
    return [
        FieldError(
            f"{path}.{key}".lstrip("."),
            "not allowed in an uploaded kubeconfig",
            "FieldValueForbidden",
        )
        for key in body
        if key not in _ALLOWED[kind]
    ]


def _section_faults(document: Mapping[str, Any], section: str, field: str) -> list[FieldError]:
    entries = document.get(section)
    if not isinstance(entries, list):
        return [FieldError(section, "must be a list", "FieldValueTypeInvalid")]
    causes: list[FieldError] = []
    for index, entry in enumerate(entries):
        path = f"{section}[{index}]"
        if not isinstance(entry, dict) or set(entry) != {"name", field}:
            causes.append(FieldError(path, f"must have exactly the fields name and {field}"))
        elif not isinstance(entry[field], dict):
            causes.append(
                FieldError(f"{path}.{field}", "must be a mapping", "FieldValueTypeInvalid")
            )
        else:
            causes += _forbidden(entry[field], field, f"{path}.{field}")
            causes += [
                FieldError(f"{path}.{field}.{key}", "must be a string", "FieldValueTypeInvalid")
                for key, value in entry[field].items()
                if not isinstance(value, str)
            ]
    return causes


def _checked(config: ClusterConfig) -> ClusterConfig:
    parts = urlsplit(config.server)
    if parts.scheme != "https" or parts.username or parts.query or parts.fragment:
        path = "clusters[].cluster.server"
        raise Invalid(
            "The kubeconfig's server must be a plain https address.",
            [FieldError(path, "must be https, without user, query or fragment")],
        )
    return config

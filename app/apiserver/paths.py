"""Which object or collection a URL names: the path grammar of the Kubernetes API.

``/api/v1/...`` is the core group, ``/apis/<group>/<version>/...`` all others; then ``namespaces/<ns>`` if the kind is
namespaced, the plural, a name and a subresource. Whether the kind exists is the registry's question, not this one's.
"""

from dataclasses import dataclass

from app.errors import NotFound


@dataclass(frozen=True, slots=True)
class Target:
    group: str
    version: str
    plural: str
    namespace: str | None = None  # None: cluster-scoped, or all namespaces
    name: str | None = None  # None: the collection
    subresource: str = ""


def unknown_path() -> NotFound:
    return NotFound("the server could not find the requested resource")


def parse_path(group: str, version: str, rest: str) -> Target:
    """`rest` is what follows the version, without slashes at either end."""
    parts = rest.split("/")
    if "" in parts:
        raise unknown_path()
    namespace = None
    if _starts_with_namespace(group, parts):
        namespace, parts = parts[1], parts[2:]
    if len(parts) > 3:
        raise unknown_path()
    plural, name, subresource = (*parts, None, None)[:3]
    return Target(
        group=group,
        version=version,
        plural=plural or "",
        namespace=namespace,
        name=name,
        subresource=subresource or "",
    )


def _starts_with_namespace(group: str, parts: list[str]) -> bool:
    """Namespaces are themselves objects of the core group: ``namespaces/x`` and ``namespaces/x/status``."""
    if len(parts) < 3 or parts[0] != "namespaces":
        return False
    return bool(group) or parts[2] not in ("status", "finalize")

"""What is served, told to clients: groups, versions, resources and their verbs.

The aggregated form (``APIGroupDiscoveryList``, KEP-3352) tells everything in one answer for ``/api`` and one for
``/apis``; the plain forms are for older clients, for ``kubectl api-versions`` and for the aggregator's health check.
"""

from typing import Any

from app.apiserver.accept import Wish
from app.apiserver.kinds import Kind
from app.apiserver.paths import unknown_path
from app.apiserver.registry import Group, Registry, Served
from app.core.manifests import Manifest

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_STATUS_VERBS = ("get", "patch", "update")

# Without a core group kubectl takes no file of ``kind: List``, so there is always one; if it has no kinds, then the
# events that `application` answers with none, so that ``kubectl get events`` says so instead of failing.
_EVENT = Kind(
    group="",
    version="v1",
    kind="Event",
    plural="events",
    singular="event",
    namespaced=True,
    short_names=("ev",),
    status=False,
    schema={},
)
_EMPTY_CORE = Group("", {"v1": [Served(_EVENT, "v1", {})]})


class Discovery:
    def __init__(self, registry: Registry, *, advertise_watch: bool) -> None:
        self._registry = registry
        self._verbs = [verb for verb in _VERBS if advertise_watch or verb != "watch"]

    def core(self, wish: Wish) -> Manifest:
        """``/api``: the core group."""
        group = self._find("")
        if wish.form:
            return self._aggregated([group])
        return {
            "kind": "APIVersions",
            "versions": list(group.versions),
            "serverAddressByClientCIDRs": [],
        }

    def groups(self, wish: Wish) -> Manifest:
        """``/apis``."""
        named = list(self._registry.named_groups())
        if wish.form:
            return self._aggregated(named)
        groups = [_group(group) for group in named]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, name: str) -> Manifest:
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(self._find(name))}

    def resources(self, group: str, version: str) -> Manifest:
        """``/apis/<group>/<version>`` and ``/api/v1``."""
        served = self._find(group).versions.get(version)
        if served is None:
            raise unknown_path()
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": [entry for one in served for entry in self._plain(one)],
        }

    def _find(self, name: str) -> Group:
        group = self._registry.groups.get(name, None if name else _EMPTY_CORE)
        if group is None:
            raise unknown_path()
        return group

    def _verbs_of(self, kind: Kind) -> list[str]:
        return ["list"] if kind is _EVENT else self._verbs

    def _plain(self, served: Served) -> list[Manifest]:
        kind = served.kind
        entry: Manifest = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": self._verbs_of(kind),
            **_nicknames(served),
        }
        if not kind.status:
            return [entry]
        status = {
            "name": f"{kind.plural}/status",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(_STATUS_VERBS),
        }
        return [entry, status]

    def _aggregated(self, groups: list[Group]) -> Manifest:
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": group.name},
                    "versions": [
                        {
                            "version": version,
                            "freshness": "Current",
                            "resources": [self._aggregated_resource(one) for one in served],
                        }
                        for version, served in group.versions.items()
                    ],
                }
                for group in groups
            ],
        }

    def _aggregated_resource(self, served: Served) -> Manifest:
        kind = served.kind
        response = {"group": kind.group, "version": served.version, "kind": kind.kind}
        entry: Manifest = {
            "resource": kind.plural,
            "responseKind": response,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "singularResource": kind.singular,
            "verbs": self._verbs_of(kind),
            **_nicknames(served),
        }
        if kind.status:
            entry["subresources"] = [
                {
                    "subresource": "status",
                    "responseKind": response,
                    "verbs": list(_STATUS_VERBS),
                }
            ]
        return entry


def _nicknames(served: Served) -> Manifest:
    told: dict[str, Any] = {}
    if served.kind.short_names:
        told["shortNames"] = list(served.kind.short_names)
    if served.kind.categories:
        told["categories"] = list(served.kind.categories)
    return told


def _group(group: Group) -> Manifest:
    versions = [
        {"groupVersion": f"{group.name}/{version}", "version": version}
        for version in group.versions
    ]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}

"""At which path does an apiserver keep objects of a kind?

A `Resource` is the least that a client needs: group, version, plural, and whether a namespace belongs in the path.
Every name is quoted as one path segment, so no object name can reach another path.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Without a namespace, a namespaced resource's path is that of all namespaces."""
        root = ("apis", self.group, self.version) if self.group else ("api", self.version)
        scope = ("namespaces", namespace) if self.namespaced and namespace else ()
        tail = tuple(part for part in (name, subresource) if part)
        return "/" + "/".join(quote(part, safe="") for part in (*root, *scope, self.plural, *tail))

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


JOBS: Final = Resource("batch", "v1", "jobs")
PODS: Final = Resource("", "v1", "pods")
NODES: Final = Resource("", "v1", "nodes", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", namespaced=False)
EVENTS: Final = Resource("events.k8s.io", "v1", "events")
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
LIMIT_RANGES: Final = Resource("", "v1", "limitranges")
RUNTIME_CLASSES: Final = Resource("node.k8s.io", "v1", "runtimeclasses", namespaced=False)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False
)
TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)

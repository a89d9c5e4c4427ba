"""Which writes do the API server's own admission plug-ins refuse or complete?

Namespace lifecycle (nothing is created in a namespace that is missing or on its way out, and the system's own
namespaces stay), priority (a pod's number comes from its class), and the service account and the tolerations that every
pod has.
"""

from collections.abc import Sequence

from app.apiserver.kinds import Kind
from app.apiserver.storage import Storage
from app.core.manifests import Manifest
from app.errors import Forbidden, NotFound
from app.sandbox.admission.review import Write

PERMANENT_NAMESPACES = ("default", "kube-system", "kube-public")

_PODS = ("", "pods")
_AWAY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class BuiltinAdmission:
    def __init__(self, storage: Storage, *, namespaces: Kind, priority_classes: Kind) -> None:
        self._storage = storage
        self._namespaces = namespaces
        self._priority_classes = priority_classes

    async def check(self, write: Write) -> None:
        if write.kind.key == self._namespaces.key:
            if write.operation == "DELETE" and write.name in PERMANENT_NAMESPACES:
                raise _forbidden(write, "this namespace may not be deleted")
        elif write.operation == "CREATE" and write.namespace is not None:
            await self._check_namespace(write, write.namespace)

    async def complete(self, write: Write) -> Manifest | None:
        """Return the new object with what admission adds to it."""
        pod = write.new
        if pod is None or write.operation != "CREATE" or write.kind.key != _PODS:
            return pod
        spec = {"serviceAccountName": "default", "serviceAccount": "default", **pod["spec"]}
        spec["tolerations"] = _tolerations(spec.get("tolerations") or ())
        name = spec.get("priorityClassName")
        found = await self._priority(name) if name else await self._default_priority()
        if name and found is None:
            raise _forbidden(write, f"no PriorityClass with name {name} was found")
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
        spec["priority"] = (found or {}).get("value", 0)
        spec["preemptionPolicy"] = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
        return {**pod, "spec": spec}

    async def _check_namespace(self, write: Write, name: str) -> None:
        namespace = await self._storage.get(self._namespaces, None, name)
        if namespace is None:
            details = {"name": name, "kind": "namespaces"}
            raise NotFound(f'namespaces "{name}" not found', details=details)
        if "deletionTimestamp" in namespace["metadata"]:
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise _forbidden(write, why)

    async def _priority(self, name: str) -> Manifest | None:
        return await self._storage.get(self._priority_classes, None, name)

    async def _default_priority(self) -> Manifest | None:
        classes = (await self._storage.list(self._priority_classes, None)).items
        return next((one for one in classes if one.get("globalDefault")), None)


def _forbidden(write: Write, why: str) -> Forbidden:
    kind = write.kind
    return Forbidden(
        f'{kind.resource} "{write.name}" is forbidden: {why}',
        details={"name": write.name, "group": kind.group, "kind": kind.plural},
    )


def _tolerations(given: Sequence[Manifest]) -> list[Manifest]:
    """A pod bears with a node that is away for five minutes, unless it says something else."""
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in _AWAY
        if not any(_covers(one, key) for one in given)
    ]
    return [*given, *added]


def _covers(toleration: Manifest, key: str) -> bool:
    effect = toleration.get("effect") or "NoExecute"
    return toleration.get("key") in (None, "", key) and effect == "NoExecute"

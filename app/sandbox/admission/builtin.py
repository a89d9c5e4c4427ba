"""Which writes do the API server's own admission plug-ins refuse or complete?

Namespace lifecycle (nothing is created in a namespace that is missing or on its way out, and the system's own
namespaces stay) and priority (a pod's number comes from its class).
"""

from app.apiserver.kinds import Kind
from app.apiserver.storage import Storage
from app.core.manifests import Manifest
from app.errors import Forbidden, NotFound
from app.sandbox.admission.review import Write

PERMANENT_NAMESPACES = ("default", "kube-system", "kube-public")

_PODS = ("", "pods")


class BuiltinAdmission:
    def __init__(self, storage: Storage, *, namespaces: Kind, priority_classes: Kind) -> None:
        self._storage = storage
        self._namespaces = namespaces
        self._priority_classes = priority_classes

    async def check(self, write: Write) -> None:
        if write.kind.key == self._namespaces.key:
            if write.operation == "DELETE" and write.name in PERMANENT_NAMESPACES:
                raise Forbidden(
                    f'namespaces "{write.name}" is forbidden: this namespace may not be deleted'
                )
        elif write.operation == "CREATE" and write.namespace is not None:
            await self._check_namespace(write, write.namespace)

    async def complete(self, write: Write) -> Manifest | None:
        """Return the new object with what admission adds to it."""
        pod = write.new
        if pod is None or write.operation != "CREATE" or write.kind.key != _PODS:
            return pod
        name = pod["spec"].get("priorityClassName")
        found = await self._priority(name) if name else await self._default_priority()
        if found is None:
            if name:
                raise Forbidden(
                    f'pods "{write.name}" is forbidden: no PriorityClass with name {name} was found'
                )
            return {**pod, "spec": {**pod["spec"], "priority": 0}}
        spec = {
            **pod["spec"],
            "priorityClassName": found["metadata"]["name"],
            "priority": found["value"],
            "preemptionPolicy": found.get("preemptionPolicy", "PreemptLowerPriority"),
        }
        return {**pod, "spec": spec}

    async def _check_namespace(self, write: Write, name: str) -> None:
        namespace = await self._storage.get(self._namespaces, None, name)
        if namespace is None:
            details = {"name": name, "kind": "namespaces"}
            raise NotFound(f'namespaces "{name}" not found', details=details)
        if "deletionTimestamp" in namespace["metadata"]:
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise Forbidden(f'{write.kind.resource} "{write.name}" is forbidden: {why}')

    async def _priority(self, name: str) -> Manifest | None:
        return await self._storage.get(self._priority_classes, None, name)

    async def _default_priority(self) -> Manifest | None:
        classes = (await self._storage.list(self._priority_classes, None)).items
        return next((one for one in classes if one.get("globalDefault")), None)

"""One test's part of the world: a namespace in the cluster, and queues of its own in Sluice.

Jobs are spoken of by name. A question about a job looks at the live objects, each time anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.cluster.admin import Admin, ApiError, Object, has_condition
from tests.e2e.front import Front, Kubectl
from tests.e2e.manifests import cluster_queue, flavor, local_queue
from tests.e2e.records import Records
from tests.e2e.waiting import eventually


@dataclass
class World:
    namespace: str
    cluster: Admin
    kubectl: Kubectl
    """With the cluster's kubeconfig."""
    front: Front
    records: Records

    def mine(self, name: str) -> str:
        """The name of a cluster-wide object, not to be met by another test."""
        return f"{name}-{self.namespace}"

    def open_queue(self, cpus: str = "4", name: str = "main", **spec: Any) -> str:
        """A flavor for any node, a ClusterQueue with so much of it, and a LocalQueue of this name in front."""
        queue = self.mine(name)
        self.front.kubectl.apply(
            flavor(self.mine("any")),
            cluster_queue(queue, {self.mine("any"): cpus}, **spec),
            local_queue(self.namespace, name, queue),
        )
        return queue

    # Jobs

    def submit(self, job: Object) -> Object:
        job["metadata"]["namespace"] = self.namespace
        return self.cluster.create(job)

    def path(self, job: str) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{job}"

    def job(self, name: str) -> Object:
        return self.cluster.get(self.path(name))

    def exists(self, name: str) -> bool:
        listed = self.cluster.get(f"/apis/batch/v1/namespaces/{self.namespace}/jobs")["items"]
        return name in {one["metadata"]["name"] for one in listed}

    def patch(self, name: str, body: Object) -> Object:
        return self.cluster.patch(self.path(name), body)

    def label(self, name: str, labels: Mapping[str, str | None]) -> Object:
        return self.patch(name, {"metadata": {"labels": dict(labels)}})

    def delete(self, name: str) -> None:
        self.cluster.delete(self.path(name))

    def is_suspended(self, name: str) -> bool:
        return self.job(name)["spec"].get("suspend") is True

    def marks(self, name: str) -> dict[str, str]:
        """Our annotations on the job, without their prefix."""
        found = self.job(name)["metadata"].get("annotations") or {}
        return {
            key.removeprefix("sluice.dev/"): value
            for key, value in found.items()
            if key.startswith("sluice.dev/")
        }

    def pods(self, job: str | None = None) -> list[Object]:
        query = {} if job is None else {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
        found: list[Object] = self.cluster.get(
            f"/api/v1/namespaces/{self.namespace}/pods", **query
        )["items"]
        return found

    def end_pods(self, job: str) -> None:
        """Let pods that run forever end well, as their kubelet would say it."""

        def all_run() -> list[Object] | None:
            found = self.pods(job)
            return found if {pod["status"].get("phase") for pod in found} == {"Running"} else None

        for pod in eventually(all_run):
            self.end_pod(pod["metadata"]["name"])

    def end_pod(self, name: str) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/status"
        self.cluster.patch(path, {"status": {"phase": "Succeeded"}})

    def events(self, job: str) -> list[tuple[str, str]]:
        """Reasons and notes of our events about a job, the oldest first."""
        uid = self.job(job)["metadata"]["uid"]
        found = self.cluster.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        ours = [
            one
            for one in found["items"]
            if one["regarding"].get("uid") == uid
            and one.get("reportingController") == "sluice.dev/controller"
        ]
        return [
            (one["reason"], one["note"]) for one in sorted(ours, key=lambda one: one["eventTime"])
        ]

    # Their workloads

    def workloads(self) -> list[Object]:
        return self.front.items("workloads", self.namespace)

    def workload(self, job: str) -> Object | None:
        """Of the job that has this name now."""
        try:
            uid = self.job(job)["metadata"]["uid"]
        except ApiError:
            return None
        for one in self.workloads():
            if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences", ())):
                return one
        return None

    def why(self, job: str) -> tuple[str, str]:
        """Reason and message of its QuotaReserved condition."""
        found = condition(self.workload(job) or {}, "QuotaReserved")
        return found.get("reason", ""), found.get("message", "")

    # Waiting

    def until_running(self, *jobs: str, within_s: float = 20.0) -> None:
        def all_run() -> bool:
            return all(not self.is_suspended(one) and self._is_admitted(one) for one in jobs)

        eventually(all_run, within_s)

    def until_waiting(self, *jobs: str, within_s: float = 20.0) -> None:
        """Suspended, known and not admitted."""

        def all_wait() -> bool:
            return all(self.is_suspended(one) and self._waits(one) for one in jobs)

        eventually(all_wait, within_s)

    def until_complete(self, *jobs: str, within_s: float = 30.0) -> None:
        def all_complete() -> bool:
            return all(has_condition(self.job(one), "Complete") for one in jobs)

        eventually(all_complete, within_s)

    def until_finished(self, *jobs: str, within_s: float = 10.0) -> None:
        """Their workloads say so too."""

        def all_finished() -> bool:
            return all(has_condition(self.workload(one) or {}, "Finished") for one in jobs)

        eventually(all_finished, within_s)

    def until_free(self, queue: str, within_s: float = 10.0) -> None:
        """Nothing is charged to the ClusterQueue."""
        eventually(lambda: all(span["ended_at"] for span in self.records.spans(queue)), within_s)

    def _waits(self, job: str) -> bool:
        found = self.workload(job)
        return found is not None and not (found.get("status") or {}).get("admission")

    def _is_admitted(self, job: str) -> bool:
        found = self.workload(job)
        return found is not None and has_condition(found, "Admitted")


def condition(found: Object, kind: str) -> Object:
    for one in (found.get("status") or {}).get("conditions") or ():
        if one["type"] == kind:
            return dict(one)
    return {}

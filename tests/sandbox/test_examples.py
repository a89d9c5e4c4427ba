"""Are the example manifests what they claim to be: valid, and more than the quota they compete for?"""

from pathlib import Path

import pytest
import yaml

from app.core import manifests, pods
from app.intake.kinds import DEFINITIONS
from app.sandbox.cluster import Sandbox
from tests.sandbox.client import NODES, Kubectl, Object, client_of
from tests.sandbox.conftest import settings

EXAMPLES = Path(__file__).parents[2] / "examples"
QUOTA = list(yaml.safe_load_all((EXAMPLES / "quota.yaml").read_text()))
NODE_MANIFESTS = list(yaml.safe_load_all((EXAMPLES / "nodes.yaml").read_text()))
JOBS = [
    one
    for path in sorted((EXAMPLES / "jobs").glob("*.yaml"))
    for one in yaml.safe_load_all(path.read_text())
]
GPU = "nvidia.com/gpu"


def gpus(job: Object) -> int:
    spec = job["spec"]
    return int(spec["parallelism"]) * pods.shape(spec["template"]).requests.get(GPU, 0)


@pytest.mark.parametrize(
    "manifest", QUOTA, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}"
)
def test_the_quota_is_valid(manifest: Object) -> None:
    prepared = DEFINITIONS[manifest["kind"]].prepare(manifest, None)
    assert manifests.parse(prepared) is not None


def test_queues_and_classes_that_jobs_name_exist() -> None:
    places = {
        (one["metadata"]["namespace"], one["metadata"]["name"])
        for one in QUOTA
        if one["kind"] == "LocalQueue"
    }
    classes = {one["metadata"]["name"] for one in QUOTA if one["kind"] == "WorkloadPriorityClass"}
    for job in JOBS:
        labels = job["metadata"]["labels"]
        assert (job["metadata"]["namespace"], labels["kueue.x-k8s.io/queue-name"]) in places
        assert labels.get("kueue.x-k8s.io/priority-class") in {None, *classes}
        assert job["spec"]["suspend"] is True


def test_thirty_jobs_ask_for_more_than_there_is() -> None:
    assert len(JOBS) == 30
    nominal = {"team-a": 64, "team-b": 64}
    wanted = {
        team: sum(gpus(job) for job in JOBS if job["metadata"]["namespace"] == team)
        for team in nominal
    }
    assert wanted["team-a"] > 2 * nominal["team-a"], "team a must borrow"
    assert sum(wanted.values()) > sum(nominal.values()), "and even that must not be enough"
    assert all(0 <= gpus(job) <= 16 for job in JOBS)


def test_the_nodes_are_the_quota() -> None:
    assert len(NODE_MANIFESTS) == 16
    total = sum(int(node["status"]["allocatable"][GPU]) for node in NODE_MANIFESTS)
    quota = sum(
        int(resource["nominalQuota"])
        for queue in QUOTA
        if queue["kind"] == "ClusterQueue"
        for group in queue["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        for resource in flavor["resources"]
        if resource["name"] == GPU
    )
    assert total == quota == 128


async def test_the_cluster_takes_them_all(tmp_path: Path) -> None:
    loaded = settings(nodes=(), manifests=tuple(NODE_MANIFESTS))
    async with Sandbox(loaded) as sandbox, client_of(sandbox) as client:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        kubectl = Kubectl(tmp_path / "kubeconfig")
        await kubectl("apply", "-f", str(EXAMPLES / "namespaces.yaml"))
        out = await kubectl("apply", "-f", str(EXAMPLES / "jobs"))
        assert out.count(" created") == len(JOBS)
        assert len(await client.items(NODES)) == 16
        # An admitted job is told its flavor: it runs on the nodes that the flavor describes.
        start = {
            "suspend": False,
            "template": {
                "spec": {
                    "nodeSelector": {"example.com/gpu-model": "a100"},
                    "tolerations": [{"key": "example.com/gpu-model", "operator": "Exists"}],
                }
            },
        }
        path = "/apis/batch/v1/namespaces/team-a/jobs/paper-deadline"
        await client.until(path, lambda job: job["status"].get("conditions"))
        (await client.patch(path, {"spec": start})).ok()
        done = await client.until(path, lambda job: job["status"].get("succeeded") == 2)
        assert done["status"]["completedIndexes"] == "0,1"

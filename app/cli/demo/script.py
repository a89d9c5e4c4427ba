"""What is played: manifests sorted by who gets them, and given to them.

Quota goes to Sluice's own API, everything else to the cluster; both by server-side apply, so that playing twice is
harmless. Namespaces that nobody declares are made.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.cli import manifests
from app.core.manifests import Manifest
from app.errors import Misconfigured, NotFound
from app.kube.client import KubeClient
from app.kube.resources import NAMESPACES, Resource

OURS = "kueue.x-k8s.io"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PAUSE_S = 0.15
"""Between two Jobs of the demo's own, so that a person sees them arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    nodes: Sequence[Manifest]
    quota: Sequence[Manifest]
    jobs: Sequence[Manifest]
    others: Sequence[Manifest]


def own() -> Script:
    """The example that comes with Sluice. Raises Misconfigured where it was installed without."""
    if not EXAMPLES.is_dir():
        raise Misconfigured(f"the examples are not here ({EXAMPLES}): name manifests with -f")
    files = [EXAMPLES / "nodes.yaml", EXAMPLES / "quota.yaml", EXAMPLES / "jobs"]
    return sorted_out(manifests.read(files))


def of_files(files: Sequence[Path]) -> Script:
    """A user's own manifests, on the example's nodes unless they bring some."""
    script = sorted_out(manifests.read(files))
    if script.nodes:
        return script
    nodes = manifests.read([EXAMPLES / "nodes.yaml"]) if EXAMPLES.is_dir() else []
    return Script(nodes=nodes, quota=script.quota, jobs=script.jobs, others=script.others)


def sorted_out(found: Sequence[Manifest]) -> Script:
    def group(manifest: Manifest) -> str:
        return str(manifest["apiVersion"]).rpartition("/")[0]

    rest = [one for one in found if group(one) != OURS]
    return Script(
        nodes=[one for one in rest if one["kind"] == "Node"],
        quota=[one for one in found if group(one) == OURS],
        jobs=[one for one in rest if one["kind"] == "Job"],
        others=[one for one in rest if one["kind"] not in ("Node", "Job")],
    )


async def prepare(script: Script, sluice: KubeClient, cluster: KubeClient) -> None:
    """Everything but the Jobs. Raises what the two APIs refuse, in their words."""
    for name in _namespaces(script):
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await cluster.apply(NAMESPACES, None, manifest, force=True)
    for manifest in script.others:
        await _apply(cluster, manifest)
    for manifest in script.quota:
        await _apply(sluice, manifest)


async def submit(script: Script, cluster: KubeClient, pause_s: float = PAUSE_S) -> None:
    for job in script.jobs:
        resource = await _resource(cluster, job)
        await cluster.create(resource, _namespace(job), job)
        await asyncio.sleep(pause_s)


async def _apply(client: KubeClient, manifest: Manifest) -> None:
    resource = await _resource(client, manifest)
    namespace = _namespace(manifest) if resource.namespaced else None
    await client.apply(resource, namespace, manifest, force=True)


async def _resource(client: KubeClient, manifest: Manifest) -> Resource:
    """What the API server calls objects of this kind, by its own discovery."""
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        known = (await client.raw(path)).get("resources") or []
    except NotFound:
        known = []
    for one in known:
        if one["kind"] == manifest["kind"] and "/" not in one["name"]:
            return Resource(group, version, one["name"], namespaced=one["namespaced"])
    name = manifest["metadata"].get("name", "")
    raise Misconfigured(
        f"{manifest['kind']} {name!r}: the cluster knows no such kind in {manifest['apiVersion']}"
    )


def _namespace(manifest: Manifest) -> str:
    return manifest["metadata"].get("namespace") or "default"


def _namespaces(script: Script) -> list[str]:
    declared = {one["metadata"]["name"] for one in script.others if one["kind"] == "Namespace"}
    cluster_scoped = {
        "ClusterQueue",
        "Cohort",
        "ResourceFlavor",
        "WorkloadPriorityClass",
        "Topology",
    }
    used = [one for one in (*script.quota, *script.jobs) if one["kind"] not in cluster_scoped]
    return sorted({_namespace(one) for one in used} - declared - {"default"})

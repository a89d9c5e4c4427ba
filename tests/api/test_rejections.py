"""What is refused, in which words, at which field, and that nothing of it is stored.

The rules of each kind are proved in `tests/unit/intake`; here is what reaches a person, and what reaches Postgres.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.running import BASE, Corner, Worker
from tests.apiserver.running import Kubectl
from tests.unit.intake import samples
from tests.unit.intake.samples import edited

NOMINAL = "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"
LENDING = "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit"
BORROWING = "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit"
QUEUES = f"{BASE}/clusterqueues"


async def refused(kubectl: Kubectl, manifest: Any, verb: str = "create") -> str:
    """What kubectl prints of it."""
    answer = await kubectl.attempt(verb, "-f", "-", stdin=manifest)
    assert answer.code == 1, answer.out
    return answer.err


async def test_kubectl_prints_where_and_why(corner: Corner, kubectl: Kubectl) -> None:
    before = await corner.worker.state()
    queue = corner.placed(samples.cluster_queue(), "queue")
    name = queue["metadata"]["name"]
    for path, value, words in (
        (NOMINAL, "10GB", f'{NOMINAL}: Invalid value: "10GB"'),
        (NOMINAL, "-1", f"{NOMINAL}: Invalid value"),
        (BORROWING, "5", f"{BORROWING}: "),
        ("spec.stopPolicy", "Pause", 'spec.stopPolicy: Unsupported value: "Pause"'),
        ("spec.queueingStrategy", 5, "spec.queueingStrategy: "),
    ):
        told = await refused(kubectl, edited(queue, path, value))
        assert told.startswith(f'The ClusterQueue "{name}" is invalid: '), told
        assert words in told
    two = edited(edited(queue, NOMINAL, "NaN"), "spec.stopPolicy", "Pause")
    told = await refused(kubectl, two)
    assert f"* {NOMINAL}: Invalid value" in told
    assert "* spec.stopPolicy: Unsupported value" in told
    assert await corner.worker.state() == before


BAD_QUANTITIES: list[Any] = [
    "", " ", "10GB", "10 Gi", "1e", "1E999999", "9" * 400, "NaN", "Infinity", "-Inf", "-1", "-1m", "0x10",
    "1_000", "+-1", "1Ki2", "½", "\uff11", "10Gi\n", None, True, [], {}, -1, 1e300,
]  # fmt: skip


@pytest.mark.parametrize("path", [NOMINAL, "spec.fairSharing.weight"])
async def test_quantities_that_are_none(
    http: httpx2.AsyncClient, corner: Corner, path: str
) -> None:
    before = await corner.worker.state()
    queue = corner.placed(samples.cluster_queue(fairSharing={}), "queue")
    for bad in BAD_QUANTITIES:
        if bad is None and path != NOMINAL:
            continue
        answer = await http.post(QUEUES, json=edited(queue, path, bad))
        status = answer.json()
        assert answer.status_code == 422, (bad, status)
        assert status["reason"] == "Invalid"
        assert status["details"]["causes"][0]["field"] == path, (bad, status)
    assert await corner.worker.state() == before


def _queue_faults() -> Iterator[tuple[str, dict[str, Any], str]]:
    queue = samples.cluster_queue()
    in_cohort = samples.cluster_queue(cohortName="all")
    yield "borrowing without a cohort", edited(queue, BORROWING, "1"), BORROWING
    yield "lending without a cohort", edited(queue, LENDING, "1"), LENDING
    yield "lending above nominal", edited(in_cohort, LENDING, "10001m"), LENDING
    yield "negative limit", edited(in_cohort, BORROWING, "-1"), BORROWING
    flavors = "spec.resourceGroups[0].flavors"
    yield "a flavor twice", edited(queue, f"{flavors}[1].name", "spot"), f"{flavors}[1]"
    resources = f"{flavors}[0].resources"
    yield "another resource", edited(queue, f"{resources}[0].name", "gpu"), f"{resources}[0].name"
    yield "a bad name", edited(queue, "spec.cohortName", "No_Name"), "spec.cohortName"
    borrow = {"reclaimWithinCohort": "Never", "borrowWithinCohort": {"policy": "LowerPriority"}}
    yield "contradiction", edited(queue, "spec.preemption", borrow), "spec.preemption"
    yield "no object", edited(queue, "spec", []), "spec"
    yield "no list", edited(queue, "spec.resourceGroups", {}), "spec.resourceGroups"


@pytest.mark.parametrize(
    ("manifest", "path"), [pytest.param(m, p, id=name) for name, m, p in _queue_faults()]
)
async def test_cluster_queues(
    http: httpx2.AsyncClient, corner: Corner, manifest: dict[str, Any], path: str
) -> None:
    before = await corner.worker.state()
    answer = await http.post(QUEUES, json=corner.placed(manifest, "queue"))
    assert answer.status_code == 422, answer.text
    fields = [cause["field"] for cause in answer.json()["details"]["causes"]]
    assert any(field.startswith(path) for field in fields), fields
    assert await corner.worker.state() == before


async def test_cohort_cycles(corner: Corner, kubectl: Kubectl) -> None:
    top, middle, low = (corner.name(word) for word in ("top", "middle", "low"))

    def cohort(name: str, parent: str = "") -> dict[str, Any]:
        return samples.manifest("Cohort", name, spec={"parentName": parent} if parent else {})

    before = await corner.worker.state()
    told = await refused(kubectl, cohort(top, top))
    assert f'The Cohort "{top}" is invalid: spec.parentName: ' in told
    assert await corner.worker.state() == before
    items = [cohort(low, middle), cohort(middle, top), cohort(top)]
    await kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    before = await corner.worker.state()
    parent = json.dumps({"spec": {"parentName": low}})
    for dry in ((), ("--dry-run=server",)):
        answer = await kubectl.attempt("patch", "cohort", top, *dry, "--type=merge", "-p", parent)
        assert f"a cycle of cohorts: {top} -> {low} -> {middle} -> {top}" in answer.err
    assert await corner.worker.state() == before


async def test_of_two_edits_that_close_a_cycle_together_one_wins(
    http: httpx2.AsyncClient, corner: Corner
) -> None:
    names = [corner.name(f"c{number}") for number in range(4)]
    for name in names:
        manifest = samples.manifest("Cohort", name, spec={})
        (await http.post(f"{BASE}/cohorts", json=manifest)).raise_for_status()
    headers = {"Content-Type": "application/merge-patch+json"}

    async def hang(child: str, parent: str | None) -> int:
        body = json.dumps({"spec": {"parentName": parent}})
        answer = await http.patch(f"{BASE}/cohorts/{child}", content=body, headers=headers)
        return answer.status_code

    for _ in range(5):
        ring = zip(names, [*names[1:], names[0]], strict=True)
        answers = await asyncio.gather(*(hang(child, parent) for child, parent in ring))
        assert sorted(answers) == [200, 200, 200, 422], answers
        for name in names:
            assert await hang(name, None) == 200


async def test_cluster_queue_of_a_local_queue_stays(corner: Corner, kubectl: Kubectl) -> None:
    local = corner.placed(samples.local_queue(), "main")
    await kubectl("create", "-f", "-", stdin=local)
    before = await corner.worker.state()
    told = await refused(kubectl, edited(local, "spec.clusterQueue", "other"), "apply")
    assert "spec.clusterQueue: " in told
    assert "immutable" in told
    assert await corner.worker.state() == before


async def test_workload_rules(corner: Corner, kubectl: Kubectl) -> None:
    def one(*pod_sets: Any, **spec: Any) -> dict[str, Any]:
        manifest = corner.placed(samples.workload(*pod_sets, **spec), "one")
        return samples.manifest(
            "Workload", "one", metadata={"namespace": corner.namespace}, spec=manifest["spec"]
        )

    before = await corner.worker.state()
    requests = "spec.podSets[0].template.spec.containers[0].resources.requests"
    for manifest, path in (
        (one(samples.pod_set(count=-1)), "spec.podSets[0].count: "),
        (one(samples.pod_set(minCount=4)), "spec.podSets[0].minCount: "),
        (edited(one(), f"{requests}.cpu", "-1"), f"{requests}[cpu]: "),
        (edited(one(), f"{requests}.pods", "1"), f"{requests}[pods]: "),
        (edited(one(), "spec.podSets", []), "spec.podSets: "),
        (one(samples.pod_set("a"), samples.pod_set("a")), "spec.podSets[1]: Duplicate value"),
    ):
        assert path in await refused(kubectl, manifest)
    assert await corner.worker.state() == before
    await kubectl("create", "-f", "-", stdin=one())
    held = samples.reserved()["status"]
    status = json.dumps({"status": held})
    to = ("patch", "wl", "one", "--type=merge")
    await kubectl(*to, "--subresource=status", "-p", status)
    before = await corner.worker.state()
    for patch, path in (
        ({"spec": {"queueName": "other"}}, "spec.queueName: "),
        ({"spec": {"podSets": [samples.pod_set(count=9)]}}, "spec.podSets[0].count: "),
    ):
        answer = await kubectl.attempt(*to, "-p", json.dumps(patch))
        assert path in answer.err, answer
    raised = {"status": {"admission": {"clusterQueue": "another"}}}
    answer = await kubectl.attempt(*to, "--subresource=status", "-p", json.dumps(raised))
    assert "status.admission" in answer.err
    assert await corner.worker.state() == before


async def test_bodies_that_cannot_be_read(http: httpx2.AsyncClient, corner: Corner) -> None:
    before = await corner.worker.state()
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    nested: dict[str, Any] = {}
    for _ in range(70):
        nested = {"x": nested}
    queue = corner.placed(samples.cluster_queue(), "queue")
    text = json.dumps(queue)
    bodies: list[tuple[str | bytes, str]] = [
        ("", "must be one object"),
        ("{", "not valid JSON"),
        ("[]", "object"),
        ("null", ""),
        ('"text"', ""),
        (deep, "deep"),
        (json.dumps({**queue, "spec": nested}), "levels deep"),
        (text.replace('"10"', "NaN", 1), "NaN"),
        (text.replace('"10"', "1" * 5000, 1), "too many digits"),
        (b"\xff\xfe", "UTF-8"),
        (text.replace("spot", "sp\\u0000ot", 1), "NUL"),
        (text.replace("spot", "sp\\ud800ot", 1), "surrogate"),
        (text.replace("v1beta2", "v9"), "API version"),
        (text.replace("ClusterQueue", "Cohort", 1), "kind"),
    ]
    for body, words in bodies:
        headers = {"Content-Type": "application/json"}
        answer = await http.post(QUEUES, content=body, headers=headers)
        assert answer.status_code == 400, (body[:40], answer.text)
        assert words in answer.json()["message"], answer.text
    assert await corner.worker.state() == before


async def test_yaml_that_cannot_be_read(http: httpx2.AsyncClient, corner: Corner) -> None:
    before = await corner.worker.state()
    bomb = "a: &a [x,x,x]\n" + "\n".join(f"b{n}: &b{n} [*a,*a]" for n in range(9))
    for body in (
        "a: [",
        "\tx: 1",
        bomb,
        "a: !!python/object:os.system x",
        "a: {b: {c: " * 200,
        "a: 1\na: 2",
        "--- 1\n--- 2",
        "[" * 100_000,
    ):
        headers = {"Content-Type": "application/apply-patch+yaml"}
        url = f"{QUEUES}/{corner.name('queue')}?fieldManager=x"
        answer = await http.patch(url, content=body, headers=headers)
        assert answer.status_code == 400, (body[:20], answer.text)
    assert await corner.worker.state() == before


async def test_kubectl_says_what_is_wrong_with_a_file(tmp_path: Path, kubectl: Kubectl) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nspec: {a: [}\n")
    answer = await kubectl.attempt("apply", "-f", str(file))
    assert answer.code == 1
    assert "error parsing" in answer.err
    file.write_text("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterKew\nmetadata: {name: a}\n")
    answer = await kubectl.attempt("apply", "-f", str(file))
    assert 'no matches for kind "ClusterKew"' in answer.err


async def test_a_huge_body_costs_nothing(worker: Worker, corner: Corner) -> None:
    """Both with a length, which is refused unread, and without one, where bytes are counted."""
    before = await corner.worker.state()
    chunk = b" " * 65536

    async def endless() -> Any:
        for _ in range(50 * 16):
            yield chunk

    memory = _resident_bytes()
    for headers in ({"Content-Length": str(50 * 2**20)}, {}):
        async with worker.client() as client:
            try:
                answer = await client.post(
                    QUEUES,
                    content=endless(),
                    headers={"Content-Type": "application/json", **headers},
                )
            except httpx2.WriteError:
                continue
        assert answer.status_code == 413, answer.text
        assert answer.json()["reason"] == "RequestEntityTooLarge"
    assert _resident_bytes() - memory < 16 * 2**20
    assert await corner.worker.state() == before


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


HOSTILE = [
    "'; drop table audit; --", "%' or 1=1 --", "a/b", "../../etc/passwd", "$(id)", "a\r\nX: y", "\x1b[31m",
    "{{7*7}}", "%s%n", "名前", "A" * 300, "-a", "a.", "", "..", "null byte \\0",
]  # fmt: skip


async def test_hostile_names_are_only_text(http: httpx2.AsyncClient, corner: Corner) -> None:
    before = await corner.worker.state()
    queue = samples.cluster_queue()
    for text in HOSTILE:
        named = {**queue, "metadata": {"name": text}}
        answer = await http.post(QUEUES, json=named)
        assert answer.status_code in (400, 422), (text, answer.text)
        labelled = corner.placed(queue, "queue")
        labelled["metadata"]["labels"] = {text or "-": "x"}
        if text:
            answer = await http.post(QUEUES, params={"dryRun": "All"}, json=labelled)
            assert answer.status_code in (201, 422), (text, answer.text)
            assert answer.status_code == 422 or text == "a/b"
        for parameter in ("labelSelector", "fieldSelector", "continue", "resourceVersion", "limit"):
            answer = await http.get(QUEUES, params={parameter: text})
            assert answer.status_code in (200, 400, 422), (text, parameter, answer.text)
            if answer.status_code == 200:
                assert answer.json()["kind"] == "ClusterQueueList"
    assert await corner.worker.state() == before

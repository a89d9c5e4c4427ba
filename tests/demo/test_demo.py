"""The command a stranger runs first, as a process: does it end well, and badly when it should?"""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {}
status:
  capacity: &has {cpu: "8", memory: 8Gi, pods: "20"}
  allocatable: {cpu: "8", memory: 8Gi, pods: "20"}
""".replace(" &has", "")

QUOTA = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: main}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: "2"}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team}
spec: {clusterQueue: main}
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: team, labels: {{kueue.x-k8s.io/queue-name: main}}}}
spec:
  template:
    metadata: {{annotations: {{sluice.dev/run-seconds: "2"}}}}
    spec:
      restartPolicy: Never
      containers: [{{name: c, image: none, resources: {{requests: {{cpu: "{cpu}"}}}}}}]
"""


def play(folder: Path, *documents: str, arguments: tuple[str, ...] = ()) -> tuple[int, str]:
    file = folder / "play.yaml"
    file.write_text("\n---\n".join(documents))
    command = [sys.executable, "-m", "app", "demo", "-f", str(file), *arguments]
    environment = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "KUBECONFIG")}
    environment["COLUMNS"] = "160"  # one line a sentence
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout + done.stderr


def leftovers(folder: Path) -> list[str]:
    return [
        " ".join(process.info["cmdline"])
        for process in psutil.process_iter(["cmdline"])
        if str(folder) in " ".join(process.info["cmdline"] or ())
    ]


def test_plays_to_the_end(tmp_path: Path) -> None:
    jobs = [JOB.format(name=f"job-{number}", cpu=1) for number in range(4)]
    status, said = play(tmp_path, NODE, QUOTA, *jobs)
    assert status == 0, said
    assert "4 of 4 jobs finished" in said
    assert "quota was never exceeded" in said
    assert "waiting  job-3" in said, "two fit at a time, so the last one had to wait"
    assert leftovers(tmp_path) == []


def test_a_job_that_never_fits_ends_it_badly(tmp_path: Path) -> None:
    job = JOB.format(name="too-big", cpu=3)
    status, said = play(tmp_path, NODE, QUOTA, job, arguments=("--timeout", "6"))
    assert status == 1, said
    assert "not finished after 6s" in said


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param("a: [", "not valid YAML", id="malformed"),
        pytest.param("kind: Job", "document 2: expected an object with apiVersion", id="no object"),
        pytest.param(QUOTA.replace('"2"', '"-2"'), "nominalQuota", id="negative quota"),
        pytest.param(QUOTA.replace('"2"', "two"), "nominalQuota", id="misspelt quota"),
        pytest.param(
            QUOTA.replace("cpu, nominal", "cpu, nominaal"), "nominaal", id="unknown field"
        ),
    ],
)
def test_bad_manifests_are_told_of_in_one_sentence(
    tmp_path: Path, document: str, words: str
) -> None:
    status, said = play(tmp_path, NODE, document)
    assert status in (1, 2)
    assert words in said
    assert "Traceback" not in said

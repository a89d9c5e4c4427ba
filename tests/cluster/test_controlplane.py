"""Does the control plane of the tests behave as a cluster does?

One cluster serves the whole module; each test has a namespace of its own. What is checked here is what every
other test against the real control plane takes for granted: scheduling, the life of fake pods, identities,
webhooks, losing the API server, and that nothing is left behind.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.admin import Admin, ApiError, Object, has_condition
from tests.cluster.build import KUBERNETES_VERSION, PROGRAMS
from tests.cluster.certs import KeyPair
from tests.cluster.controlplane import ControlPlane, ControlPlaneError
from tests.cluster.nodes import break_node, create_nodes, mend_node, node
from tests.cluster.processes import free_ports

# The first run compiles the programs.
pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane() as started:
        create_nodes(started.admin, [node("gpu-0"), node("gpu-1")])
        yield started
        started.check()


@pytest.fixture
def admin(cluster: ControlPlane) -> Admin:
    return cluster.admin


@pytest.fixture
def namespace(admin: Admin, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name).translate(str.maketrans("_[]", "---"))[:60].strip("-")
    admin.create_namespace(name, {"kind": "test"})
    return name


def job(namespace: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    container = {
        "name": "main",
        "image": "registry.invalid/nothing",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": namespace},
        "spec": {"backoffLimit": 0, "template": template, **spec},
    }


def pod(namespace: str, *, annotations: dict[str, str] | None = None, gpus: str = "1") -> Object:
    container = {
        "name": "main",
        "image": "registry.invalid/nothing",
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": namespace, "annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def in_phase(phase: str) -> Any:
    return lambda found: found["status"].get("phase") == phase


def test_server_knows_its_version(admin: Admin) -> None:
    assert admin.get("/version")["gitVersion"] == KUBERNETES_VERSION


def test_nodes_are_ready_and_offer_what_they_were_given(admin: Admin) -> None:
    nodes = admin.get("/api/v1/nodes")["items"]
    assert [each["metadata"]["name"] for each in nodes] == ["gpu-0", "gpu-1"]
    assert all(has_condition(each, "Ready") for each in nodes)
    assert all(each["status"]["allocatable"]["nvidia.com/gpu"] == "8" for each in nodes)


def test_job_completes(admin: Admin, namespace: str) -> None:
    admin.create(
        job(namespace, annotations={"sluice.dev/run-seconds": "1"}, completions=2, parallelism=2)
    )
    done = admin.wait_for_condition(f"/apis/batch/v1/namespaces/{namespace}/jobs/job", "Complete")
    assert done["status"]["succeeded"] == 2
    for each in admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]:
        assert each["status"]["phase"] == "Succeeded"
        assert each["status"]["podIP"]
        assert each["spec"]["serviceAccountName"] == "default"


def test_job_fails_when_its_pods_say_so(admin: Admin, namespace: str) -> None:
    admin.create(
        job(namespace, annotations={"sluice.dev/run-seconds": "0.1", "sluice.dev/exit-code": "3"})
    )
    done = admin.wait_for_condition(f"/apis/batch/v1/namespaces/{namespace}/jobs/job", "Failed")
    assert done["status"]["failed"] == 1
    (failed,) = admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_suspended_job_makes_no_pods_and_loses_those_it_has(admin: Admin, namespace: str) -> None:
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/job"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    admin.create(job(namespace, annotations={"sluice.dev/run-seconds": "forever"}, suspend=True))
    admin.wait_for_condition(path, "Suspended")
    assert admin.get(pods)["items"] == []

    admin.patch(path, {"spec": {"suspend": False}})
    admin.wait_for(path, lambda found: found["status"].get("ready") == 1)

    admin.patch(path, {"spec": {"suspend": True}})
    admin.wait_for(pods, lambda listed: listed["items"] == [])
    assert admin.get(path)["status"].get("failed", 0) == 0


def test_pod_larger_than_any_node_stays_pending(admin: Admin, namespace: str) -> None:
    admin.create(pod(namespace, gpus="9"))

    def is_refused(found: Object) -> bool:
        return has_condition(found, "PodScheduled", "False")

    found = admin.wait_for(f"/api/v1/namespaces/{namespace}/pods/pod", is_refused)
    assert found["status"]["phase"] == "Pending"
    assert "Insufficient nvidia.com/gpu" in found["status"]["conditions"][0]["message"]


def test_pod_runs_as_long_as_it_says_even_if_it_is_changed_meanwhile(
    admin: Admin, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/pod"
    admin.create(pod(namespace, annotations={"sluice.dev/run-seconds": "2.5"}))
    admin.wait_for(path, in_phase("Running"))
    began = time.monotonic()
    time.sleep(1.8)
    admin.patch(path, {"metadata": {"labels": {"changed": "yes"}}})
    admin.wait_for(path, in_phase("Succeeded"))
    # Beginning anew would make it 4.3.
    assert 2 < time.monotonic() - began < 4.2


def test_pod_that_never_starts_holds_its_place(admin: Admin, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/pod"
    admin.create(pod(namespace, annotations={"sluice.dev/start-seconds": "never"}))
    found = admin.wait_for_condition(path, "PodScheduled")
    assert found["spec"]["nodeName"]
    time.sleep(0.5)
    assert admin.get(path)["status"]["phase"] == "Pending"
    admin.delete(path)
    admin.wait_until_gone(path)


def test_deleted_pod_takes_its_time_and_no_more_than_it_is_given(
    admin: Admin, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/pod"
    annotations = {"sluice.dev/run-seconds": "forever", "sluice.dev/stop-seconds": "60"}
    admin.create(pod(namespace, annotations=annotations))
    admin.wait_for(path, in_phase("Running"))
    began = time.monotonic()
    admin.delete(path, {"gracePeriodSeconds": 2})
    assert "deletionTimestamp" in admin.get(path)["metadata"]
    admin.wait_until_gone(path)
    # The deadline is kept by the server in whole seconds.
    assert 0.9 < time.monotonic() - began < 20


def test_pod_kept_by_a_finalizer_is_seen_to_have_ended(admin: Admin, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/pod"
    manifest = pod(namespace, annotations={"sluice.dev/run-seconds": "forever"})
    manifest["metadata"]["finalizers"] = ["example.com/held"]
    admin.create(manifest)
    admin.wait_for(path, in_phase("Running"))
    admin.delete(path)
    ended = admin.wait_for(path, in_phase("Failed"))
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    admin.patch(path, {"metadata": {"finalizers": None}})
    admin.wait_until_gone(path)


def test_broken_node_takes_no_pods_until_it_is_mended(admin: Admin, namespace: str) -> None:
    create_nodes(admin, [node("frail", {"cpu": "1", "pods": "9", "example.com/rare": "1"})])
    break_node(admin, "frail")
    manifest = pod(namespace)
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"example.com/rare": "1"}}
    admin.wait_for("/api/v1/nodes/frail", lambda found: bool(found["spec"].get("taints")))
    admin.create(manifest)
    path = f"/api/v1/namespaces/{namespace}/pods/pod"
    admin.wait_for(path, lambda found: has_condition(found, "PodScheduled", "False"))
    mend_node(admin, "frail")
    admin.wait_for(path, in_phase("Running"))
    admin.delete("/api/v1/nodes/frail")


def test_user_may_do_what_rbac_allows(cluster: ControlPlane, namespace: str) -> None:
    config = json.loads(cluster.kubeconfig_for("reader", ["readers"]).read_text())
    user = config["users"][0]["user"]
    files = KeyPair(cluster.work_dir / "reader.crt", cluster.work_dir / "reader.key")
    files.certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
    files.key.write_bytes(base64.b64decode(user["client-key-data"]))
    reader = Admin(config["clusters"][0]["cluster"]["server"], cluster.ca_path, files)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    with pytest.raises(ApiError) as refused:
        reader.get(pods)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")

    subject = {"kind": "Group", "name": "readers", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "readers", "namespace": namespace},
        "roleRef": {
            "kind": "ClusterRole",
            "name": "view",
            "apiGroup": "rbac.authorization.k8s.io",
        },
        "subjects": [subject],
    }
    cluster.admin.apply(binding)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            assert reader.get(pods)["items"] == []
            break
        except ApiError:
            time.sleep(0.05)
    else:
        pytest.fail("the role binding had no effect")
    reader.close()


class _Refuser(BaseHTTPRequestHandler):
    """An admission webhook that lets nothing through."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verdict = {
            "uid": review["request"]["uid"],
            "allowed": False,
            "status": {"message": "not while I watch"},
        }
        answer = json.dumps(review | {"response": verdict}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:
        """Write nothing."""


def test_server_calls_webhooks_of_this_process(cluster: ControlPlane, namespace: str) -> None:
    identity = cluster.serving_certificate("refuser")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(identity.certificate, identity.key)
    with HTTPServer(("127.0.0.1", 0), _Refuser) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        webhook = {
            "name": "refuser.example.com",
            "clientConfig": {
                "url": f"https://127.0.0.1:{server.server_port}/",
                "caBundle": base64.b64encode(cluster.ca_path.read_bytes()).decode(),
            },
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["configmaps"],
                }
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        made = cluster.admin.create(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "refuser"},
                "webhooks": [webhook],
            }
        )
        try:
            assert "not while I watch" in _create_config_maps_until_refused(
                cluster.admin, namespace
            )
        finally:
            cluster.admin.delete(cluster.admin.path_of(made))
            server.shutdown()
            thread.join()


def _create_config_maps_until_refused(admin: Admin, namespace: str) -> str:
    """The server takes a moment to notice a new webhook."""
    deadline = time.monotonic() + 10
    number = 0
    while time.monotonic() < deadline:
        number += 1
        try:
            admin.post(
                f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": f"n{number}"}}
            )
        except ApiError as refused:
            return str(refused)
        time.sleep(0.05)
    pytest.fail("the webhook was never called")


def test_cluster_goes_on_after_its_api_server_was_away(
    cluster: ControlPlane, namespace: str
) -> None:
    address = cluster.server
    admin = cluster.admin
    annotations = {"sluice.dev/run-seconds": "1"}
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/job"
    admin.create(job(namespace, annotations=annotations))
    admin.wait_for(path, lambda found: found["status"].get("ready") == 1)
    cluster.stop_apiserver()
    with pytest.raises(ConnectionError):
        admin.get("/version")
    with pytest.raises(ControlPlaneError, match="kube-apiserver has ended"):
        cluster.check()
    time.sleep(1.5)
    cluster.start_apiserver()
    assert cluster.server == address
    admin.wait_for_condition(path, "Complete", timeout_s=60)


def test_frozen_api_server_answers_when_it_thaws(cluster: ControlPlane) -> None:
    cluster.pause_apiserver()
    began = time.monotonic()
    thaw = threading.Timer(1, cluster.resume_apiserver)
    thaw.start()
    assert cluster.admin.get("/version")["gitVersion"] == KUBERNETES_VERSION
    assert time.monotonic() - began >= 1
    thaw.join()


def test_failed_start_shows_the_log_and_leaves_nothing(tmp_path: Path) -> None:
    broken = ControlPlane(work_dir=tmp_path, apiserver_flags=["--no-such-flag"])
    with pytest.raises(
        ControlPlaneError, match=r"kube-apiserver has ended[\s\S]*unknown flag"
    ) as failed:
        broken.start()
    assert "no-such-flag" in str(failed.value)
    assert _processes_mentioning(str(tmp_path)) == set()
    broken.stop()
    assert (tmp_path / "logs" / "kube-apiserver.log").exists()


def test_taken_port_is_exchanged_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: ControlPlane
) -> None:
    taken = int(cluster.server.rpartition(":")[2])
    offers = iter([[*free_ports(2), taken], free_ports(3)])
    monkeypatch.setattr("tests.cluster.controlplane.free_ports", lambda _count: next(offers))
    with ControlPlane(work_dir=tmp_path) as second:
        assert second.server != cluster.server
        assert second.admin.get("/api/v1/nodes")["items"] == []


@pytest.mark.parametrize("from_thread", [False, True], ids=["main-thread", "ended-thread"])
def test_servers_live_as_long_as_their_owner(tmp_path: Path, *, from_thread: bool) -> None:
    starting = "cluster.start()"
    if from_thread:
        starting = "t = threading.Thread(target=cluster.start); t.start(); t.join()"
    program = f"""
import pathlib, sys, threading, time
from tests.cluster.controlplane import ControlPlane
cluster = ControlPlane(pathlib.Path(sys.argv[1]))
{starting}
time.sleep(1)
cluster.check()
print("ready", flush=True)
time.sleep(600)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        servers = _processes_mentioning(str(tmp_path)) - {owner.pid}
        assert len(servers) == len(PROGRAMS)
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while _processes_mentioning(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _processes_mentioning(str(tmp_path)) == set()


def _processes_mentioning(text: str) -> set[int]:
    """Return the ids of the other processes that have ``text`` in their command line."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            mentions = text.encode() in (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mentions:
            found.add(int(folder.name))
    return found - {os.getpid()}

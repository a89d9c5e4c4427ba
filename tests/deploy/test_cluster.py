"""A real API server takes the manifests, and their role lets the service do its work and no more."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from app.engine.registration import NAME
from tests.cluster.controlplane import ControlPlane
from tests.deploy.files import KUBECTL, MANIFESTS, Object

pytestmark = pytest.mark.timeout(1800)  # the first run of the control plane compiles it

ACCOUNT = "system:serviceaccount:sluice-system:sluice"


class Kubectl:
    def __init__(self, cluster: ControlPlane) -> None:
        self._kubeconfig = str(cluster.kubeconfig)

    def __call__(
        self, *arguments: str, stdin: Object | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [KUBECTL, "--kubeconfig", self._kubeconfig, *arguments],
            input=json.dumps(stdin) if stdin else None,
            capture_output=True,
            text=True,
            check=False,
        )

    def as_service(
        self, *arguments: str, stdin: Object | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return self("--as", ACCOUNT, *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    with ControlPlane() as cluster:
        run = Kubectl(cluster)
        applied = run("apply", "-k", str(MANIFESTS))
        assert applied.returncode == 0, applied.stderr
        assert "Warning" not in applied.stderr  # of pod security, for one
        assert len(applied.stdout.splitlines()) == 8
        yield run


def webhooks(kind: str, name: str) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [],
    }


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_it_registers_its_own_webhooks_and_nobody_elses(kubectl: Kubectl, kind: str) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    for _ in range(2):  # makes it, then finds it there
        own = kubectl.as_service(*apply, stdin=webhooks(kind, NAME))
        assert own.returncode == 0, own.stderr
    foreign = kubectl.as_service(*apply, stdin=webhooks(kind, "somebody-elses"))
    assert "Forbidden" in foreign.stderr
    assert kubectl.as_service("delete", kind, NAME).returncode == 0


@pytest.mark.parametrize(
    "question",
    [
        "patch jobs.batch -A",
        "watch pods -A",
        "watch nodes",
        "list namespaces",
        "watch priorityclasses",
        "create events.events.k8s.io -A",
    ],
)
def test_it_may(kubectl: Kubectl, question: str) -> None:
    assert kubectl.as_service("auth", "can-i", *question.split()).stdout.strip() == "yes"


@pytest.mark.parametrize(
    "question",
    [
        "list secrets -A",
        "create jobs.batch -A",
        "delete pods -A",
        "update nodes",
        "list configmaps -A",
        "create pods/exec -A",
    ],
)
def test_it_may_not(kubectl: Kubectl, question: str) -> None:
    assert kubectl.as_service("auth", "can-i", *question.split()).stdout.strip() == "no"

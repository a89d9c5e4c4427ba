"""The files fit together and fit the program: names, ports, settings, users."""

import re
from pathlib import Path

import pytest

from app.settings import PREFIX, Settings
from tests.deploy.files import MANIFESTS, ROOT, Object, compose, pod_specs, rendered

DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
UID = 10001


def known_settings() -> set[str]:
    fields = Settings.model_fields.items()
    return {str(field.validation_alias or PREFIX + name.upper()) for name, field in fields}


def test_compose_starts_things_in_order() -> None:
    services = compose()["services"]
    assert list(services) == ["postgres", "migrate", "serve"]
    assert "pg_isready" in services["postgres"]["healthcheck"]["test"]
    assert services["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    after = services["serve"]["depends_on"]["migrate"]["condition"]
    assert after == "service_completed_successfully"
    assert [services[name]["command"] for name in ("migrate", "serve")] == [["migrate"], ["serve"]]


@pytest.mark.parametrize("name", ["migrate", "serve"])
def test_compose_runs_our_image_locked_down(name: str) -> None:
    service = compose()["services"][name]
    build = service["build"]
    assert (ROOT / build["context"] / build["dockerfile"]).read_text() == DOCKERFILE
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["user"].endswith(f":-{UID}:{UID}}}")
    assert set(service["environment"]) <= known_settings()
    credentials = re.fullmatch(
        r"postgresql://(\w+):(.+)@(\w+):5432/(\w+)", service["environment"]["DATABASE_URL"]
    )
    assert credentials is not None
    postgres = compose()["services"][credentials[3]]["environment"]
    stated = (postgres["POSTGRES_USER"], postgres["POSTGRES_PASSWORD"], postgres["POSTGRES_DB"])
    assert (credentials[1], credentials[2], credentials[4]) == stated


def test_compose_hands_over_the_kubeconfig_where_it_is_looked_for() -> None:
    serve = compose()["services"]["serve"]
    [mount] = serve["volumes"]
    assert mount.endswith(f":{serve['environment']['KUBECONFIG']}:ro")
    [port] = serve["ports"]
    assert port == f"127.0.0.1:{default_port()}:{default_port()}"


def default_port() -> int:
    return int(Settings.model_fields["api_port"].default)


def test_the_image_is_pinned_small_and_unprivileged() -> None:
    assert "--require-hashes -r requirements/run.txt" in DOCKERFILE
    assert f"USER {UID}:{UID}" in DOCKERFILE
    assert "STOPSIGNAL SIGTERM" in DOCKERFILE
    assert 'ENTRYPOINT ["sluice"]' in DOCKERFILE
    assert f"EXPOSE {default_port()}" in DOCKERFILE
    assert set(re.findall(r"\b(SLUICE_\w+)=", DOCKERFILE)) <= known_settings()
    allowed = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().split()
    for source in re.findall(r"^COPY (?!--)(\S+)", DOCKERFILE, re.MULTILINE):
        assert f"!{source}" in allowed
        assert (ROOT / source).exists()


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_pods_are_locked_down_and_set_only_what_exists(kind: str) -> None:
    pod = pod_specs()[kind]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsUser"] == UID
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {variable["name"] for variable in container["env"]} <= known_settings()
    assert pod["enableServiceLinks"] is False  # else SLUICE_PORT and its like pass for settings
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        each["name"] for each in pod["volumes"]
    }


def test_traffic_finds_the_pods_that_serve() -> None:
    objects = rendered()
    deployment = objects["Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert objects["Service"]["spec"]["selector"].items() <= labels.items()
    assert not objects["Service"]["spec"]["selector"].items() <= migrate_labels(objects).items()
    assert (
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    )
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    [port] = container["ports"]
    assert port["containerPort"] == default_port()
    assert objects["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]


def migrate_labels(objects: dict[str, Object]) -> dict[str, str]:
    labels: dict[str, str] = objects["Job"]["spec"]["template"]["metadata"]["labels"]
    return labels


def test_every_manifest_is_applied() -> None:
    listed = {path.name for path in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml"}
    text = (MANIFESTS / "kustomization.yaml").read_text()
    assert {name for name in listed if f"- {name}\n" in text} == listed


def test_the_role_is_as_small_as_it_can_be() -> None:
    granted = {
        f"{group or 'core'}/{resource}": " ".join(rule["verbs"])
        for rule in rendered()["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    own = "get create update patch delete"
    assert granted == {
        "batch/jobs": "get list watch patch",
        "batch/jobs/status": "patch",
        "core/pods": "list watch",
        "core/nodes": "get list watch",
        "core/namespaces": "get list watch",
        "scheduling.k8s.io/priorityclasses": "get list watch",
        "events.k8s.io/events": "create patch",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations": own,
        "admissionregistration.k8s.io/validatingwebhookconfigurations": own,
    }
    [webhooks] = [rule for rule in rendered()["ClusterRole"]["rules"] if "resourceNames" in rule]
    assert webhooks["resourceNames"] == ["sluice"]


def test_the_certificate_has_the_services_name() -> None:
    text = (ROOT / "deploy" / "cert-manager.yaml").read_text()
    service = rendered()["Service"]["metadata"]
    assert f"- {service['name']}.{service['namespace']}.svc\n" in text
    [volume] = [each for each in pod_specs()["Deployment"]["volumes"] if each["name"] == "tls"]
    assert f"secretName: {volume['secret']['secretName']}\n" in text


def test_nothing_secret_is_committed() -> None:
    for path in [*Path(ROOT / "deploy").rglob("*.yaml")]:
        assert "kind: Secret" not in path.read_text(), path

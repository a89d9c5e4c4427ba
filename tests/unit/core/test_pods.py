"""What a pod asks for, by Kubernetes' own rules."""

from typing import Any

import pytest

from app.core import pods


def container(cpu: str | None = None, *, limit: str | None = None, **more: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if cpu is not None:
        asked["requests"] = {"cpu": cpu}
    if limit is not None:
        asked["limits"] = {"cpu": limit}
    return {"name": "c", "resources": asked, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param(
            {"containers": [container("1"), container("500m")]}, 1500, id="containers sum"
        ),
        pytest.param(
            {"initContainers": [container("3")], "containers": [container("1")]},
            3000,
            id="the largest init container counts alone",
        ),
        pytest.param(
            {
                "initContainers": [container("1", restartPolicy="Always"), container("3")],
                "containers": [container("1")],
            },
            4000,
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {
                "initContainers": [container("3"), container("1", restartPolicy="Always")],
                "containers": [container("1")],
            },
            3000,
            id="but not beside those after it",
        ),
        pytest.param({"containers": [container(limit="2")]}, 2000, id="a limit is a request"),
        pytest.param(
            {"containers": [container("1")], "overhead": {"cpu": "250m"}},
            1250,
            id="overhead on top",
        ),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}},
            4000,
            id="pod-level requests replace the sum",
        ),
    ],
)
def test_requests_of_a_pod(spec: dict[str, Any], cpu: int) -> None:
    assert pods.shape({"spec": spec}).requests == {"cpu": cpu}


def test_a_request_above_its_limit_is_a_fault() -> None:
    shape = pods.shape({"spec": {"containers": [container("2", limit="1")]}})

    assert shape.fault == "container 'c' requests more cpu than its limit"


def test_images_do_not_tell_templates_apart_but_requests_do() -> None:
    one = pods.shape({"spec": {"containers": [container("1", image="a")]}})
    same = pods.shape({"spec": {"containers": [container("1000m", image="b")]}})
    other = pods.shape({"spec": {"containers": [container("2", image="a")]}})

    assert one.digest == same.digest != other.digest

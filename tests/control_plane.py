"""One real control plane for the whole session, shared by every test that asks for `control_plane`.

Tests keep apart by namespaces of their own. Whoever takes a server away brings it back. The first run on a machine
compiles the programs, so the first test that needs them is given the time for that, and only that one.
"""

from collections.abc import Iterator

import pytest

from tests.cluster.controlplane import ControlPlane

BUILD_TIMEOUT_S = 1800


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane() as started:
        yield started
        started.check()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(BUILD_TIMEOUT_S))
            return

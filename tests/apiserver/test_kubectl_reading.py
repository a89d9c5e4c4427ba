"""What people read with kubectl: discovery, tables, explain, describe."""

import json

from tests.apiserver.running import Kubectl
from tests.apiserver.toys import GROUP, tool, workshop


async def make(kubectl: Kubectl, *names: str) -> None:
    items = [
        workshop(name, namespace=kubectl.namespace, size=len(names) - at)
        for at, name in enumerate(names)
    ]
    await kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})


def names(listing: dict) -> list[str]:  # type: ignore[type-arg]
    return [item["metadata"]["name"] for item in listing["items"]]


async def test_version_and_discovery(kubectl: Kubectl) -> None:
    version = (await kubectl("version", "-o", "json")).json()
    assert version["serverVersion"]["gitVersion"] == "v1.37.0"
    versions = (await kubectl("api-versions")).out.split()
    assert versions == [f"{GROUP}/v1", f"{GROUP}/v1alpha1", "v1"]
    wide = (await kubectl("api-resources", "-o", "wide")).out
    line = next(line for line in wide.splitlines() if line.startswith("workshops"))
    assert line.split() == [
        "workshops", "ws", f"{GROUP}/v1", "true", "Workshop",
        "create,delete,deletecollection,get,list,patch,update,watch", "toys",
    ]  # fmt: skip


async def test_table_has_columns_wide_columns_and_age(kubectl: Kubectl) -> None:
    await make(kubectl, "one", "two")
    header, *rows = (await kubectl("get", "ws")).out.splitlines()
    assert header.split() == ["NAME", "SIZE", "READY", "AGE"]
    assert [row.split()[:2] for row in rows] == [["one", "2"], ["two", "1"]]
    assert all(row.split()[-1].endswith("s") for row in rows)
    assert "OWNER" in (await kubectl("get", "ws", "-o", "wide")).out


async def test_output_forms(kubectl: Kubectl) -> None:
    await make(kubectl, "one", "two")
    assert (await kubectl("get", "ws", "-o", "name")).out.split() == [
        f"workshop.{GROUP}/one",
        f"workshop.{GROUP}/two",
    ]
    custom = await kubectl(
        "get", "ws", "-o", "custom-columns=N:.metadata.name,S:.spec.size", "--no-headers"
    )
    assert custom.out.split() == ["one", "2", "two", "1"]
    assert "size: 2" in (await kubectl("get", "ws", "one", "-o", "yaml")).out
    by_size = await kubectl("get", "ws", "--sort-by=.spec.size", "-o", "name")
    assert [line.rpartition("/")[2] for line in by_size.out.split()] == ["two", "one"]
    table = await kubectl("get", "ws", "--sort-by=.spec.size", "--no-headers")
    assert [row.split()[0] for row in table.out.splitlines()] == ["two", "one"]


async def test_selectors(kubectl: Kubectl) -> None:
    await make(kubectl, "one", "two", "three")
    await kubectl("label", "ws", "one", "tier=gold")
    await kubectl("label", "ws", "two", "tier=silver")
    assert names(await kubectl.get("ws", "-l", "tier=gold")) == ["one"]
    assert names(await kubectl.get("ws", "-l", "tier in (gold,silver)")) == ["one", "two"]
    assert names(await kubectl.get("ws", "-l", "!tier")) == ["three"]
    assert names(await kubectl.get("ws", "-l", "tier!=gold")) == ["three", "two"]
    assert names(await kubectl.get("ws", "--field-selector", "metadata.name=two")) == ["two"]
    everywhere = await kubectl.get(
        "ws", "-A", "--field-selector", f"metadata.namespace={kubectl.namespace}"
    )
    assert names(everywhere) == ["one", "three", "two"]
    refused = await kubectl.attempt("get", "ws", "--field-selector", "spec.size=1")
    assert "field label not supported: spec.size" in refused.err


async def test_several_kinds_categories_and_all_namespaces(kubectl: Kubectl) -> None:
    await make(kubectl, "one")
    await kubectl("create", "-f", "-", stdin=tool(f"saw-{kubectl.namespace}"))
    for asked in ("ws,tools", "toys"):
        shown = (await kubectl("get", asked)).out
        assert f"workshop.{GROUP}/one" in shown
        assert f"tool.{GROUP}/saw-{kubectl.namespace}" in shown
    everywhere = (await kubectl("get", "ws", "-A")).out
    assert everywhere.split()[:2] == ["NAMESPACE", "NAME"]
    assert [kubectl.namespace, "one"] in [line.split()[:2] for line in everywhere.splitlines()]


async def test_pages_give_everything_once(kubectl: Kubectl) -> None:
    wanted = [f"w{number:02}" for number in range(23)]
    await make(kubectl, *wanted)
    assert names(await kubectl.get("ws", "--chunk-size=5")) == wanted
    rows = (await kubectl("get", "ws", "--chunk-size=7", "--no-headers")).out.splitlines()
    assert [row.split()[0] for row in rows] == wanted


async def test_describe_and_events(kubectl: Kubectl) -> None:
    await make(kubectl, "one")
    described = (await kubectl("describe", "ws", "one")).out
    assert "Size:" in described
    assert "Events:" in described
    assert "No events found" in (await kubectl("events")).err


async def test_explain(kubectl: Kubectl) -> None:
    top = (await kubectl("explain", "ws")).out
    assert "Workshop is a place where people work." in top
    assert "Standard object metadata." in top
    deep = (await kubectl("explain", "ws.spec.benches.seats")).out
    assert "How many can sit there." in deep
    assert "seats <integer>" in deep
    recursive = (await kubectl("explain", "workshops", "--recursive")).out
    assert "benches\t<[]Object>" in recursive
    assert "finalizers\t<[]string>" in recursive
    other = await kubectl("explain", "ws.spec", f"--api-version={GROUP}/v1alpha1")
    assert "places" in other.out
    assert (await kubectl.attempt("explain", "ws.spec.nothing")).code == 1


async def test_raw(kubectl: Kubectl) -> None:
    await make(kubectl, "one")
    path = f"/apis/{GROUP}/v1/namespaces/{kubectl.namespace}/workshops/one"
    assert json.loads((await kubectl("get", "--raw", path)).out)["spec"] == {"size": 1}
    assert (await kubectl("get", "--raw", "/readyz")).out == "ok"


async def test_managed_fields_are_hidden_unless_asked_for(kubectl: Kubectl) -> None:
    await make(kubectl, "one")
    assert "managedFields" not in (await kubectl.get("ws", "one"))["metadata"]
    shown = await kubectl.get("ws", "one", "--show-managed-fields")
    assert shown["metadata"]["managedFields"][0]["manager"] == "kubectl-create"


async def test_other_served_version(kubectl: Kubectl) -> None:
    await make(kubectl, "one", "two")
    answer = await kubectl("get", f"workshops.v1alpha1.{GROUP}", "one", "-o", "json")
    assert answer.json()["apiVersion"] == f"{GROUP}/v1alpha1"
    assert answer.json()["spec"] == {"places": 2}
    assert "is deprecated; use v1" in answer.err
    listing = await kubectl.get(f"workshops.v1alpha1.{GROUP}")
    assert [item["spec"] for item in listing["items"]] == [{"places": 2}, {"places": 1}]


async def test_who_am_i_and_what_may_i(kubectl: Kubectl) -> None:
    assert "alice" in (await kubectl("auth", "whoami")).out
    assert (await kubectl("auth", "can-i", "create", "workshops")).out.strip() == "yes"
    bob = Kubectl(kubectl.url, kubectl.home, kubectl.namespace, "bob-token")
    refused = await bob.attempt("auth", "can-i", "create", "workshops")
    assert refused.out.strip().startswith("no")
    assert (await bob("auth", "can-i", "list", "workshops")).out.strip() == "yes"
    forbidden = await bob.attempt("create", "-f", "-", stdin=workshop("x", namespace=bob.namespace))
    assert "(Forbidden)" in forbidden.err
    nobody = Kubectl(kubectl.url, kubectl.home, kubectl.namespace, "wrong")
    assert (await nobody.attempt("get", "ws")).code == 1

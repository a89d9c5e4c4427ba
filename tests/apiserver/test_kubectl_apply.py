"""kubectl apply and diff, client-side and server-side, and who owns which fields."""

from typing import Any

from tests.apiserver.running import Kubectl
from tests.apiserver.toys import GROUP, workshop


def bench(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


async def apply(kubectl: Kubectl, manager: str, *args: str, **spec: Any) -> Any:
    manifest = workshop("one", namespace=kubectl.namespace, **spec)
    return await kubectl.attempt(
        "apply", "--server-side", f"--field-manager={manager}", "-f", "-", *args, stdin=manifest
    )


async def test_client_side_apply(kubectl: Kubectl) -> None:
    manifest = workshop("one", namespace=kubectl.namespace, size=2, owner="eve", crafts=["wood"])
    assert "created" in (await kubectl("apply", "-f", "-", stdin=manifest)).out
    assert "unchanged" in (await kubectl("apply", "-f", "-", stdin=manifest)).out
    del manifest["spec"]["crafts"]
    manifest["spec"]["size"] = 3
    diff = await kubectl.attempt("diff", "-f", "-", stdin=manifest)
    assert diff.code == 1
    assert "-  size: 2" in diff.out
    assert "+  size: 3" in diff.out
    assert "configured" in (await kubectl("apply", "-f", "-", stdin=manifest)).out
    assert (await kubectl.get("ws", "one"))["spec"] == {"size": 3, "owner": "eve"}
    assert (await kubectl.attempt("diff", "-f", "-", stdin=manifest)).code == 0
    manifest["spec"]["size"] = 8
    preview = await kubectl("apply", "--dry-run=server", "-f", "-", "-o", "json", stdin=manifest)
    assert preview.json()["spec"]["size"] == 8
    assert (await kubectl.get("ws", "one"))["spec"]["size"] == 3


async def test_server_side_apply_merges_what_managers_say(kubectl: Kubectl) -> None:
    made = await apply(kubectl, "ann", size=2, benches=[bench("left", seats=1)], crafts=["wood"])
    assert "serverside-applied" in made.out
    await apply(kubectl, "ben", benches=[bench("right", seats=5)], crafts=["iron"])
    found = await kubectl.get("ws", "one", "--show-managed-fields")
    assert found["spec"]["benches"] == [bench("left", seats=1), bench("right", seats=5)]
    assert found["spec"]["crafts"] == ["wood", "iron"]
    owned = {
        one["manager"]: one["fieldsV1"]["f:spec"] for one in found["metadata"]["managedFields"]
    }
    assert owned["ben"] == {
        "f:benches": {'k:{"name":"right"}': {".": {}, "f:name": {}, "f:seats": {}}},
        "f:crafts": {'v:"iron"': {}},
    }
    assert found["metadata"]["managedFields"][0]["operation"] == "Apply"


async def test_what_is_no_longer_applied_goes(kubectl: Kubectl) -> None:
    await apply(
        kubectl, "ann", size=2, owner="eve", benches=[bench("left"), bench("right", seats=2)]
    )
    await apply(kubectl, "ben", benches=[bench("right", vice=True)])
    await apply(kubectl, "ann", size=2, owner="eve")
    found = await kubectl.get("ws", "one")
    assert found["spec"]["benches"] == [bench("right", vice=True)]
    unchanged = await apply(kubectl, "ann", size=2, owner="eve")
    assert unchanged.code == 0
    assert (await kubectl.get("ws", "one"))["metadata"]["resourceVersion"] == found["metadata"][
        "resourceVersion"
    ]


async def test_conflicts_and_force(kubectl: Kubectl) -> None:
    await apply(kubectl, "ann", size=2, hours=[8, 17])
    refused = await apply(kubectl, "ben", size=3)
    assert refused.code == 1
    assert 'Apply failed with 1 conflict: conflict with "ann": .spec.size' in refused.err
    refused = await apply(kubectl, "ben", size=3, hours=[9])
    assert "Apply failed with 2 conflicts" in refused.err
    shared = await apply(kubectl, "ben", size=2)
    assert shared.code == 0
    forced = await apply(kubectl, "ben", "--force-conflicts", size=4)
    assert forced.code == 0
    found = await kubectl.get("ws", "one", "--show-managed-fields")
    assert found["spec"] == {"size": 4, "hours": [8, 17]}
    owned = {
        one["manager"]: one["fieldsV1"]["f:spec"] for one in found["metadata"]["managedFields"]
    }
    assert owned == {"ann": {"f:hours": {}}, "ben": {"f:size": {}}}


async def test_updates_take_fields_from_appliers(kubectl: Kubectl) -> None:
    await apply(kubectl, "ann", size=2, owner="eve")
    await kubectl(
        "patch", "ws", "one", "--type=merge", "-p", '{"spec":{"size":6}}', "--field-manager=hand"
    )
    refused = await apply(kubectl, "ann", size=2, owner="eve")
    assert f'conflict with "hand" using {GROUP}/v1: .spec.size' in refused.err
    await kubectl("label", "ws", "one", "tier=gold")
    found = await kubectl.get("ws", "one", "--show-managed-fields")
    owners = {(one["manager"], one["operation"]) for one in found["metadata"]["managedFields"]}
    assert owners == {("ann", "Apply"), ("hand", "Update"), ("kubectl-label", "Update")}


async def test_server_side_diff_and_dry_run(kubectl: Kubectl) -> None:
    await apply(kubectl, "kubectl", size=2)
    changed = workshop("one", namespace=kubectl.namespace, size=3)
    diff = await kubectl.attempt("diff", "--server-side", "-f", "-", stdin=changed)
    assert diff.code == 1
    assert "+  size: 3" in diff.out
    preview = await kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", "-o", "jsonpath={.spec.size}",
                            stdin=changed)  # fmt: skip
    assert preview.out == "3"
    assert (await kubectl.get("ws", "one"))["spec"]["size"] == 2


async def test_apply_of_status_and_unknown_fields(kubectl: Kubectl) -> None:
    await apply(kubectl, "ann", size=2)
    status = {**workshop("one", namespace=kubectl.namespace), "status": {"visitors": 3}}
    await kubectl(
        "apply",
        "--server-side",
        "--subresource=status",
        "--field-manager=door",
        "-f",
        "-",
        stdin=status,
    )
    found = await kubectl.get("ws", "one", "--show-managed-fields")
    assert found["status"] == {"visitors": 3}
    assert found["spec"] == {"size": 2}
    unknown = await apply(kubectl, "ann", size=2, shape="round")
    assert 'unknown field "spec.shape"' in unknown.err


async def test_apply_in_another_version(kubectl: Kubectl) -> None:
    await apply(kubectl, "ann", size=2)
    old = workshop("one", namespace=kubectl.namespace, places=5)
    old["apiVersion"] = f"{GROUP}/v1alpha1"
    refused = await kubectl.attempt(
        "apply", "--server-side", "--field-manager=ben", "-f", "-", stdin=old
    )
    assert 'conflict with "ann": .spec.size' in refused.err
    await kubectl(
        "apply", "--server-side", "--force-conflicts", "--field-manager=ben", "-f", "-", stdin=old
    )
    found = await kubectl.get("ws", "one", "--show-managed-fields")
    assert found["spec"] == {"size": 5}
    assert [(one["manager"], one["apiVersion"]) for one in found["metadata"]["managedFields"]] == [
        ("ben", f"{GROUP}/v1alpha1")
    ]


async def test_client_side_apply_moves_to_server_side(kubectl: Kubectl) -> None:
    manifest = workshop("one", namespace=kubectl.namespace, size=2)
    await kubectl("apply", "-f", "-", stdin=manifest)
    manifest["spec"]["size"] = 3
    await kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    found = await kubectl.get("ws", "one", "--show-managed-fields")
    assert found["spec"]["size"] == 3
    owners = [(one["manager"], one["operation"]) for one in found["metadata"]["managedFields"]]
    assert sorted(owners) == [("kubectl", "Apply"), ("kubectl-last-applied", "Apply")]
    manifest["spec"] = {"owner": "eve"}
    await kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    assert (await kubectl.get("ws", "one"))["spec"] == {"size": 1, "owner": "eve"}


async def test_apply_a_list_with_prune_of_nothing(kubectl: Kubectl) -> None:
    items = [workshop(name, namespace=kubectl.namespace) for name in ("a", "b")]
    listing = {"apiVersion": "v1", "kind": "List", "items": items}
    for flags in ([], ["--server-side", "--force-conflicts"]):
        out = (await kubectl("apply", *flags, "-f", "-", stdin=listing)).out
        assert f"workshop.{GROUP}/a" in out
        assert f"workshop.{GROUP}/b" in out
    items[0]["spec"] = {"shape": "round"}
    refused = await kubectl.attempt("apply", "-f", "-", stdin=listing)
    assert 'unknown field "spec.shape"' in refused.err

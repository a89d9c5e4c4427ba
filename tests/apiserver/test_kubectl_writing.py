"""What people change with kubectl: create, replace, edit, label, patch, delete."""

import json
from typing import Any

from tests.apiserver.running import Kubectl
from tests.apiserver.toys import GROUP, tool, workshop


async def make(kubectl: Kubectl, name: str, **spec: Any) -> dict[str, Any]:
    manifest = workshop(name, namespace=kubectl.namespace, **spec)
    made: dict[str, Any] = (await kubectl("create", "-f", "-", "-o", "json", stdin=manifest)).json()
    return made


async def test_create(kubectl: Kubectl) -> None:
    made = await make(kubectl, "one", owner="eve")
    assert made["spec"] == {"owner": "eve", "size": 1}
    assert made["metadata"]["generation"] == 1
    again = await kubectl.attempt(
        "create", "-f", "-", stdin=workshop("one", namespace=kubectl.namespace)
    )
    assert (
        f'(AlreadyExists): error when creating "STDIN": workshops.{GROUP} "one" already exists'
        in again.err
    )


async def test_create_in_another_version_and_with_a_generated_name(kubectl: Kubectl) -> None:
    manifest = workshop("ignored", namespace=kubectl.namespace, places=7)
    manifest["apiVersion"] = f"{GROUP}/v1alpha1"
    manifest["metadata"] = {"generateName": "shop-", "namespace": kubectl.namespace}
    made = (await kubectl("create", "-f", "-", "-o", "json", stdin=manifest)).json()
    assert made["spec"] == {"places": 7}
    name = made["metadata"]["name"]
    assert name.startswith("shop-")
    assert len(name) == len("shop-") + 5
    assert (await kubectl.get("ws", name))["spec"] == {"size": 7}


async def test_invalid_objects_name_their_fields(kubectl: Kubectl) -> None:
    refused = await kubectl.attempt(
        "create", "-f", "-", stdin=workshop("one", namespace=kubectl.namespace, size=-1)
    )
    assert (
        'The Workshop "one" is invalid: spec.size: Invalid value: -1: must not be negative'
        in refused.err
    )
    bad = workshop("Bad_Name", namespace=kubectl.namespace)
    bad["metadata"]["labels"] = {"ok": "not ok!"}
    refused = await kubectl.attempt("create", "-f", "-", stdin=bad)
    assert "* metadata.name: Invalid value" in refused.err
    assert "* metadata.labels: Invalid value" in refused.err


async def test_field_validation(kubectl: Kubectl) -> None:
    text = f"""
apiVersion: {GROUP}/v1
kind: Workshop
metadata: {{name: one, colour: red}}
spec:
  size: 2
  benches:
  - name: left
    legs: 4
  shape: round
"""
    strict = await kubectl.attempt("create", "-f", "-", stdin=text)
    assert strict.code == 1
    for path in ("metadata.colour", "spec.benches[0].legs", "spec.shape"):
        assert f'unknown field "{path}"' in strict.err
    warned = await kubectl("create", "--validate=warn", "-f", "-", "-o", "json", stdin=text)
    assert 'Warning: unknown field "spec.shape"' in warned.err
    assert warned.json()["spec"] == {"size": 2, "benches": [{"name": "left"}]}
    ignored = await kubectl("apply", "--validate=ignore", "-f", "-", stdin=text)
    assert "unknown field" not in ignored.err


async def test_dry_run(kubectl: Kubectl) -> None:
    manifest = workshop("one", namespace=kubectl.namespace)
    for where in ("server", "client"):
        await kubectl("create", f"--dry-run={where}", "-f", "-", stdin=manifest)
        assert (await kubectl.attempt("get", "ws", "one")).code == 1
    await make(kubectl, "one", size=2)
    patched = await kubectl("patch", "ws", "one", "--type=merge", "-p", '{"spec":{"size":9}}', "--dry-run=server",
                            "-o", "jsonpath={.spec.size}")  # fmt: skip
    assert patched.out == "9"
    await kubectl("delete", "ws", "one", "--dry-run=server")
    assert (await kubectl.get("ws", "one"))["spec"]["size"] == 2


async def test_merge_and_json_patch_but_no_strategic_one(kubectl: Kubectl) -> None:
    await make(kubectl, "one", size=2, owner="eve", crafts=["wood"])
    await kubectl("patch", "ws", "one", "--type=merge", "-p", '{"spec":{"size":3,"crafts":null}}')
    operations = [
        {"op": "test", "path": "/spec/size", "value": 3},
        {"op": "replace", "path": "/spec/size", "value": 4},
        {"op": "add", "path": "/spec/hours", "value": [8]},
        {"op": "add", "path": "/spec/hours/-", "value": 17},
    ]
    await kubectl("patch", "ws", "one", "--type=json", "-p", json.dumps(operations))
    found = await kubectl.get("ws", "one")
    assert found["spec"] == {"size": 4, "owner": "eve", "hours": [8, 17]}
    assert found["metadata"]["generation"] == 3
    failed = await kubectl.attempt(
        "patch", "ws", "one", "--type=json", "-p", json.dumps(operations)
    )
    assert "is invalid" in failed.err
    strategic = await kubectl.attempt("patch", "ws", "one", "-p", '{"spec":{"size":3}}')
    assert "strategic-merge-patch+json is not supported by" in strategic.err


async def test_status_is_apart(kubectl: Kubectl) -> None:
    await make(kubectl, "one")
    status = '{"status":{"conditions":[{"type":"Ready","status":"True"}]},"spec":{"size":50}}'
    await kubectl("patch", "ws", "one", "--type=merge", "-p", status)
    found = await kubectl.get("ws", "one")
    assert "status" not in found
    assert found["metadata"]["generation"] == 2
    await kubectl("patch", "ws", "one", "--subresource=status", "--type=merge",
                  "-p", status.replace("50", "60"))  # fmt: skip
    found = await kubectl.get("ws", "one", "--show-managed-fields")
    assert found["spec"]["size"] == 50
    assert found["metadata"]["generation"] == 2
    assert found["status"]["conditions"][0]["status"] == "True"
    owner = next(
        one for one in found["metadata"]["managedFields"] if one.get("subresource") == "status"
    )
    assert 'k:{"type":"Ready"}' in owner["fieldsV1"]["f:status"]["f:conditions"]
    assert (await kubectl("get", "ws", "one", "--subresource=status")).out.split()[4:7] == [
        "one",
        "50",
        "True",
    ]


async def test_replace_checks_the_version(kubectl: Kubectl) -> None:
    made = await make(kubectl, "one", size=2)
    made["spec"]["size"] = 3
    await kubectl("replace", "-f", "-", stdin=made)
    made["spec"]["size"] = 4
    stale = await kubectl.attempt("replace", "-f", "-", stdin=made)
    assert "the object has been modified" in stale.err
    await kubectl("replace", "-f", "-", stdin=workshop("one", namespace=kubectl.namespace, size=5))
    assert (await kubectl.get("ws", "one"))["spec"]["size"] == 5
    missing = await kubectl.attempt("replace", "-f", "-", stdin=tool("none"))
    assert "(NotFound)" in missing.err


async def test_edit_label_and_annotate(kubectl: Kubectl) -> None:
    await make(kubectl, "one", owner="EDITME")
    refused = await kubectl.attempt("edit", "ws", "one")  # owner is immutable
    assert f'workshops.{GROUP} "one" is invalid' in refused.err
    await make(kubectl, "two", crafts=["EDITME"])
    assert "edited" in (await kubectl("edit", "ws", "two")).out
    await kubectl("label", "ws", "two", "tier=gold")
    await kubectl("annotate", "ws", "two", "note=hello")
    found = await kubectl.get("ws", "two")
    assert found["spec"]["crafts"] == ["edited"]
    assert found["metadata"]["labels"] == {"tier": "gold"}
    assert found["metadata"]["annotations"] == {"note": "hello"}
    assert found["metadata"]["generation"] == 2
    assert "already has a value" in (await kubectl.attempt("label", "ws", "two", "tier=tin")).err
    await kubectl("label", "ws", "two", "tier-")
    assert "labels" not in (await kubectl.get("ws", "two"))["metadata"] or not found["metadata"][
        "labels"
    ].get("x")


async def test_delete(kubectl: Kubectl) -> None:
    for name in ("a", "b", "c", "d"):
        await make(kubectl, name)
    await kubectl("delete", "ws", "a", "--cascade=orphan")
    assert "NotFound" in (await kubectl.attempt("delete", "ws", "a")).err
    await kubectl("delete", "ws", "a", "--ignore-not-found")
    await kubectl("label", "ws", "b", "gone=soon")
    await kubectl("delete", "ws", "-l", "gone=soon")
    left = await kubectl.get("ws")
    assert [item["metadata"]["name"] for item in left["items"]] == ["c", "d"]
    await kubectl("delete", "ws", "--all", "--cascade=foreground")
    assert (await kubectl.get("ws"))["items"] == []


async def test_finalizers_hold_an_object(kubectl: Kubectl) -> None:
    manifest = workshop("one", namespace=kubectl.namespace)
    manifest["metadata"]["finalizers"] = ["example.com/hold"]
    await kubectl("create", "-f", "-", stdin=manifest)
    await kubectl("delete", "ws", "one", "--wait=false")
    held = await kubectl.get("ws", "one")
    assert held["metadata"]["deletionTimestamp"]
    more = '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'
    refused = await kubectl.attempt("patch", "ws", "one", "--type=merge", "-p", more)
    assert "no new finalizers can be added" in refused.err
    await kubectl("patch", "ws", "one", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert (await kubectl.attempt("get", "ws", "one")).code == 1


async def test_cluster_scoped_kind(kubectl: Kubectl) -> None:
    name = f"hammer-{kubectl.namespace}"
    await kubectl("create", "-f", "-", stdin=tool(name, 3))
    row = (await kubectl("get", "tool", name, "--no-headers")).out.split()
    assert row == [name, "3"]
    await kubectl("delete", "tool", name)
    assert "NotFound" in (await kubectl.attempt("get", "tool", name)).err

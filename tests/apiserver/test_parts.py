"""Small parts on their own: selectors, ages, patches, Accept headers, paths, schemas, the memory storage."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from app.apiserver.accept import Wish, wish
from app.apiserver.discovery import Discovery
from app.apiserver.durations import age, duration
from app.apiserver.memory import MemoryStorage
from app.apiserver.ownership import Actor, track_update
from app.apiserver.patches import merge_patch
from app.apiserver.paths import Target, parse_path
from app.apiserver.registry import Registry
from app.apiserver.schemas import settle
from app.apiserver.selectors import matcher, parse_labels
from app.apiserver.shelf import place_of
from app.apiserver.storage import User
from app.apiserver.unknown import prune_unknown
from app.core.manifests import Manifest
from app.errors import BadRequest, Gone, NotAcceptable, NotFound
from tests.apiserver.toys import WORKSHOP, workshop, workshop_schema

USER = User("test")


@pytest.mark.parametrize(
    ("selector", "labels", "wanted"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b,c!=d", {"a": "b"}, True),
        ("a=b", {}, False),
        ("a!=b", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("a=", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("x.y/a in (b, c),z", {"x.y/a": "c", "z": "1"}, True),
        ("a in (b,c)", {}, False),
        ("a notin (b,c)", {}, True),
        ("a notin (b,c)", {"a": "b"}, False),
        ("a>3,a<9", {"a": "5"}, True),
        ("a>3", {"a": "3"}, False),
        ("in", {"in": "x"}, True),
        (" a = b , c ", {"a": "b", "c": "x"}, True),
    ],
)
def test_label_selectors(selector: str, labels: dict[str, str], *, wanted: bool) -> None:
    assert parse_labels(selector).matches(labels) is wanted


@pytest.mark.parametrize(
    "wrong",
    ["a b", "a=b,", ",a", "a in b", "a in (b", "=b", "a=b=c", "a>x", "a in (@)", "a" * 9000],
)
def test_unreadable_selectors(wrong: str) -> None:
    with pytest.raises(BadRequest):
        parse_labels(wrong)


def test_field_selectors() -> None:
    manifest = workshop("one", namespace="here", owner="eve")

    def chosen(text: str) -> bool:
        matches = matcher(WORKSHOP, "", text)
        return matches is None or matches(manifest)

    assert chosen("metadata.name=one,metadata.namespace==here")
    assert not chosen("metadata.name!=one")
    assert chosen("spec.owner=eve")
    assert not chosen("spec.owner=")
    for wrong in ("spec.size=1", "metadata.name", "a=b;c=d"):
        with pytest.raises(BadRequest):
            matcher(WORKSHOP, "", wrong)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (200, "3m20s"), (599, "9m59s"),
        (600, "10m"), (10_799, "179m"), (10_800, "3h"), (12_000, "3h20m"), (28_800, "8h"), (172_799, "47h"),
        (172_800, "2d"), (180_000, "2d2h"), (691_200, "8d"), (63_072_000, "2y"), (70_000_000, "2y80d"),
        (300_000_000, "9y"),
    ],
)  # fmt: skip
def test_durations(seconds: int, told: str) -> None:
    assert duration(seconds) == told


def test_ages() -> None:
    now = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert age("2026-01-01T00:00:00Z", now) == "60s"
    assert age(None, now) == "<unknown>"
    assert age("yesterday", now) == "<invalid>"


def test_merge_patch_of_the_rfc() -> None:
    """The examples of RFC 7386, appendix A."""
    for original, patch, result in [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]:
        before = repr(original)
        assert merge_patch(original, patch) == result
        assert repr(original) == before


def test_accept_headers() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    old = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
    assert wish(f"{old},{table},application/json", ("Table",)).form == "Table"
    assert wish(f"{table},application/json", ()) == Wish()
    assert wish("application/json, */*") == wish(None) == wish("text/html, */*") == Wish()
    for wrong in ("application/yaml", table, "application/cbor;q=1"):
        with pytest.raises(NotAcceptable):
            wish(wrong)


def test_paths() -> None:
    assert parse_path("", "v1", "namespaces/x") == Target("", "v1", "namespaces", name="x")
    assert parse_path("", "v1", "namespaces/x/status") == Target(
        "", "v1", "namespaces", None, "x", "status"
    )
    assert parse_path("", "v1", "namespaces/x/pods/p/log") == Target(
        "", "v1", "pods", "x", "p", "log"
    )
    assert parse_path("g", "v1", "namespaces/x/status") == Target("g", "v1", "status", "x")
    assert parse_path("g", "v1", "things/a/status") == Target(
        "g", "v1", "things", None, "a", "status"
    )
    for wrong in ("", "a//b", "a/b/c/d", "namespaces/x/a/b/c/d"):
        with pytest.raises(NotFound):
            parse_path("g", "v1", wrong)


def test_schemas_are_put_in_one_form() -> None:
    schema = settle(
        {
            "$defs": {
                "Tree": {
                    "type": "object",
                    "properties": {"below": {"items": {"$ref": "#/$defs/Tree"}}},
                },
                "Leaf": {"type": "string", "description": "A leaf."},
            },
            "properties": {
                "tree": {"$ref": "#/$defs/Tree"},
                "leaf": {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}], "default": None},
                "own": {"allOf": [{"$ref": "#/$defs/Leaf"}], "description": "My own."},
            },
        }
    )
    assert "$ref" not in repr(schema)
    assert schema["properties"]["leaf"]["type"] == "string"
    assert schema["properties"]["own"]["description"] == "My own."
    deep = {"tree": {"below": [{"anything": {"at": "all"}}], "extra": 1}}
    assert prune_unknown(deep, schema) == ["tree.extra"]


def test_unknown_fields() -> None:
    schema = settle(workshop_schema("size"))
    value: Manifest = {
        "metadata": {"name": "a", "labels": {"any": "thing"}, "nope": 1},
        "spec": {
            "benches": [{"name": "x"}, {"bad": {"deep": 1}}],
            "limits": {"any": 1},
            "size": "wrong type",
        },
        "more": {},
    }
    assert prune_unknown(value, schema) == ["metadata.nope", "spec.benches[1].bad", "more"]
    assert value == {
        "metadata": {"name": "a", "labels": {"any": "thing"}},
        "spec": {"benches": [{"name": "x"}, {}], "limits": {"any": 1}, "size": "wrong type"},
    }


async def put(
    storage: MemoryStorage, manifest: Manifest | None, name: str = "one", **how: Any
) -> Manifest | None:
    return await storage.write(
        WORKSHOP, "ns", name, lambda _: manifest, user=USER, dry_run=how.get("dry_run", False)
    )


async def test_memory_numbers_every_write_and_keeps_nothing_of_dry_runs() -> None:
    storage = MemoryStorage()
    first = await put(storage, workshop("one", namespace="ns"))
    assert first is not None
    assert first["metadata"]["resourceVersion"] == "1"
    assert await put(storage, first) is first
    assert await put(storage, workshop("two", namespace="ns"), "two", dry_run=True) is not None
    assert await put(storage, None, dry_run=True) is first
    assert storage.revision == 1
    listing = await storage.list(WORKSHOP, None)
    assert (list(listing.items), listing.resource_version) == ([first], 1)
    assert (await storage.list(WORKSHOP, "other")).items == []
    assert await put(storage, None) == {
        **first,
        "metadata": {**first["metadata"], "resourceVersion": "2"},
    }
    assert await storage.get(WORKSHOP, "ns", "one") is None


async def test_memory_watch_tells_old_and_new_and_progress() -> None:
    storage = MemoryStorage(progress_s=0.05)
    first = await put(storage, workshop("one", namespace="ns", size=1))
    await put(storage, workshop("one", namespace="ns", size=2))
    await put(storage, None)
    watch = storage.watch(WORKSHOP, "ns", 0)
    batch = await anext(watch)
    assert [(event.type, event.resource_version) for event in batch.events] == [
        ("ADDED", 1),
        ("MODIFIED", 2),
        ("DELETED", 3),
    ]
    assert batch.events[1].old == first
    idle = await anext(watch)
    assert (idle.events, idle.resource_version) == ([], 3)
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    await storage.write(
        WORKSHOP, "other", "x", lambda _: workshop("x", namespace="other"), user=USER, dry_run=False
    )
    await put(storage, workshop("two", namespace="ns"), "two")
    told = (await waiting, await anext(watch))
    assert [event.object["metadata"]["name"] for batch in told for event in batch.events] == ["two"]
    await watch.aclose()


async def test_memory_lists_are_sorted_whatever_happens() -> None:
    storage = MemoryStorage()
    alive: set[tuple[str, str]] = set()
    for number in range(200):
        place = (f"ns{number * 7 % 5}", f"w{number * 13 % 31}")
        gone = place in alive and number % 3 == 0
        manifest = None if gone else workshop(place[1], namespace=place[0], size=number)
        await storage.write(WORKSHOP, *place, lambda _, new=manifest: new, user=USER, dry_run=False)  # type: ignore[misc]
        alive = alive - {place} if gone else alive | {place}
        found = [place_of(one) for one in (await storage.list(WORKSHOP, None)).items]
        assert found == sorted(alive)
        within = [place_of(one) for one in (await storage.list(WORKSHOP, "ns3")).items]
        assert within == [one for one in found if one[0] == "ns3"]


async def test_memory_forgets_old_changes() -> None:
    storage = MemoryStorage(log_limit=2)
    for number in range(10):
        await put(storage, workshop("one", namespace="ns", size=number))
    with pytest.raises(Gone):
        await anext(storage.watch(WORKSHOP, None, 1))
    assert (await storage.list(WORKSHOP, None)).oldest > 1
    batch = await anext(storage.watch(WORKSHOP, None, 9))
    assert [event.resource_version for event in batch.events] == [10]
    storage.compact()
    with pytest.raises(Gone):
        await anext(storage.watch(WORKSHOP, None, 9))
    assert (await anext(storage.watch(WORKSHOP, None, 10))).events == []


def test_watch_can_be_left_out_of_the_advertised_verbs() -> None:
    """Behind the aggregation layer, so that the cluster's garbage collector does not wait for us."""
    registry = Registry([WORKSHOP])
    quiet = Discovery(registry, advertise_watch=False)
    plain = quiet.resources(WORKSHOP.group, "v1")["resources"][0]
    aggregated = quiet.groups(Wish("APIGroupDiscoveryList"))["items"][0]["versions"][0][
        "resources"
    ][0]
    for verbs in (plain["verbs"], aggregated["verbs"]):
        assert verbs == ["create", "delete", "deletecollection", "get", "list", "patch", "update"]
    assert (
        "watch"
        in Discovery(registry, advertise_watch=True).resources(WORKSHOP.group, "v1")["resources"][
            0
        ]["verbs"]
    )


def test_too_many_updaters_become_one() -> None:
    served = Registry([WORKSHOP]).find(WORKSHOP.group, "v1", "workshops")
    assert served is not None
    registry = Registry([WORKSHOP])
    manifest: Manifest | None = None
    for number in range(15):
        actor = Actor(
            manager=f"m{number:02}",
            operation="Update",
            api_version=served.api_version,
            subresource="",
            time=f"2026-01-01T00:00:{number:02}Z",
        )
        limits = {f"r{one}": one for one in range(number + 1)}
        new = workshop("one", namespace="ns", limits=limits)
        manifest = track_update(registry, served, actor, manifest, new)
    assert manifest is not None
    owners = manifest["metadata"]["managedFields"]
    assert len(owners) == 10
    assert owners[0]["manager"] == "ancient-changes"
    owned = [set(entry["fieldsV1"]["f:spec"]["f:limits"]) - {"."} for entry in owners]
    assert owned[0] == {f"f:r{number}" for number in range(6)}
    assert owned[1:] == [{f"f:r{number}"} for number in range(6, 15)]

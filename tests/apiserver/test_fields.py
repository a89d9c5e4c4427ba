"""Field sets, differences, merges and prunes: the parts of server-side apply, one by one."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.apiserver.comparing import difference_of, fields_of
from app.apiserver.fields import Fields, difference, intersection, is_sound, paths, union
from app.apiserver.merging import merge, prune
from app.apiserver.schemas import settle
from tests.apiserver.toys import workshop_schema

SCHEMA = settle(workshop_schema("size"))


def _maybe_member(node: Fields) -> Fields:
    return {".": {}, **node} if len(node) > 1 else node


names = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', "v:1"])
nodes: st.SearchStrategy[Fields] = st.recursive(
    st.just({}),
    lambda below: st.dictionaries(names, below, max_size=3).map(_maybe_member),
    max_leaves=8,
)
sets = st.dictionaries(names, nodes, max_size=4)


def members(fields: Fields) -> set[str]:
    return set(paths(fields))


@settings(max_examples=60, deadline=None)
@given(sets, sets)
def test_field_sets_behave_like_sets(left: Fields, right: Fields) -> None:
    assert members(union(left, right)) == members(left) | members(right)
    assert members(intersection(left, right)) == members(left) & members(right)
    assert members(difference(left, right)) == members(left) - members(right)


@settings(max_examples=60, deadline=None)
@given(sets, sets)
def test_results_have_no_empty_branches(left: Fields, right: Fields) -> None:
    for made in (union(left, right), intersection(left, right), difference(left, right)):
        assert is_sound(made)
        assert bool(made) == bool(members(made))


def test_paths_are_readable() -> None:
    fields = {
        "f:spec": {
            "f:crafts": {'v:"wood"': {}},
            "f:benches": {'k:{"name":"left"}': {".": {}, "f:seats": {}}},
        }
    }
    assert list(paths(fields)) == [
        '.spec.crafts[="wood"]',
        '.spec.benches[name="left"]',
        '.spec.benches[name="left"].seats',
    ]


def test_soundness() -> None:
    assert is_sound({"f:a": {".": {}, "k:{}": {}}})
    wrongs: tuple[Any, ...] = (None, [], {"a": {}}, {"f:a": 1}, {"f:a": {"b": {}}})
    for wrong in wrongs:
        assert not is_sound(wrong)


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def test_fields_of_a_configuration() -> None:
    value = spec(
        size=1,
        benches=[{"name": "left", "seats": 2}],
        crafts=["wood"],
        hours=[1, 2],
        selector={"a": "b"},
        limits={"cpu": 1, "empty": {}},
    )
    assert fields_of(value, SCHEMA) == {
        "f:spec": {
            "f:size": {},
            "f:benches": {'k:{"name":"left"}': {".": {}, "f:name": {}, "f:seats": {}}},
            "f:crafts": {'v:"wood"': {}},
            "f:hours": {},
            "f:selector": {},
            "f:limits": {"f:cpu": {}, "f:empty": {}},
        }
    }


def test_empty_values() -> None:
    """An empty leaf or map is owned; an empty list of keyed items says nothing."""
    value = spec(hours=[], crafts=[], selector={}, limits={})
    owned: Fields = {"f:hours": {}, "f:selector": {}, "f:limits": {}}
    assert fields_of(value, SCHEMA) == {"f:spec": owned}


def test_differences() -> None:
    old = spec(
        size=1,
        benches=[{"name": "left", "seats": 2}, {"name": "right"}],
        hours=[1],
        limits={"cpu": 1},
    )
    new = spec(
        size=2,
        benches=[{"name": "right"}, {"name": "new"}],
        hours=[1, 2],
        owner="eve",
        limits={"cpu": 1},
    )
    found = difference_of(old, new, SCHEMA)
    assert list(paths(found.modified)) == [".spec.size", ".spec.hours"]
    assert list(paths(found.added)) == [
        '.spec.benches[name="new"]',
        '.spec.benches[name="new"].name',
        ".spec.owner",
    ]
    assert list(paths(found.removed)) == [
        '.spec.benches[name="left"]',
        '.spec.benches[name="left"].name',
        '.spec.benches[name="left"].seats',
    ]


def test_reordering_keyed_items_changes_no_field() -> None:
    old, new = spec(crafts=["a", "b"]), spec(crafts=["b", "a"])
    found = difference_of(old, new, SCHEMA)
    assert (found.added, found.modified, found.removed) == ({}, {}, {})


def test_lists_whose_items_have_no_keys_are_one_leaf() -> None:
    old, new = spec(benches=[{"seats": 1}]), spec(benches=[{"seats": 2}])
    assert list(paths(difference_of(old, new, SCHEMA).modified)) == [".spec.benches"]


def test_merge_keeps_what_is_not_applied_and_orders_what_is() -> None:
    live = spec(
        owner="eve",
        crafts=["a", "mine", "b", "c"],
        benches=[{"name": "x", "seats": 1}, {"name": "y", "seats": 2}],
        hours=[1, 2],
        selector={"a": "b"},
    )
    applied = spec(
        crafts=["c", "new", "a"],
        benches=[{"name": "y", "vice": True}, {"name": "z"}],
        hours=[3],
        selector={"c": "d"},
    )
    assert merge(live, applied, SCHEMA) == spec(
        owner="eve",
        crafts=["c", "mine", "b", "new", "a"],
        benches=[{"name": "x", "seats": 1}, {"name": "y", "seats": 2, "vice": True}, {"name": "z"}],
        hours=[3],
        selector={"c": "d"},
    )


def test_prune_takes_what_was_dropped_and_is_owned_by_nobody() -> None:
    value = spec(
        size=1,
        owner="eve",
        crafts=["a", "b"],
        benches=[{"name": "x", "seats": 1}, {"name": "y", "seats": 2, "vice": True}],
        limits={"cpu": 1},
    )
    dropped = fields_of(value, SCHEMA)
    owned = fields_of(spec(size=1, crafts=["b"], benches=[{"name": "y", "vice": True}]), SCHEMA)
    assert prune(value, dropped, owned, SCHEMA) == spec(
        size=1, crafts=["b"], benches=[{"name": "y", "vice": True}]
    )


def test_prune_leaves_what_the_manager_never_applied() -> None:
    value = spec(size=1, limits={"cpu": 1, "memory": 2})
    dropped = fields_of(spec(limits={"cpu": 1}), SCHEMA)
    assert prune(value, dropped, {}, SCHEMA) == spec(size=1, limits={"memory": 2})

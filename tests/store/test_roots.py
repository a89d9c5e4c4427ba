"""Which edits make decisions of which cohort trees stale."""

import pytest

from app.core.manifests import Manifest
from app.store import roots
from app.store.session import Database
from tests.store.objects import (
    ADMIN,
    cluster_queue,
    cohort,
    manifest,
    with_spec,
    with_status,
    workload,
)

Objects = dict[str, Manifest]


@pytest.fixture
async def tree(database: Database) -> Objects:
    """org > (left > l) and (right > r); a queue in each leaf, one alone, one in a cohort without an object."""
    objects = {
        "org": cohort("org", 1),
        "left": cohort("left", 2, parent="org"),
        "l": cohort("l", 3, parent="left"),
        "other": cohort("other", 4),
        "in-l": cluster_queue("in-l", 5, cohort="l"),
        "in-other": cluster_queue("in-other", 6, cohort="other"),
        "alone": cluster_queue("alone", 7),
        "in-ghost": cluster_queue("in-ghost", 8, cohort="ghost"),
        "lq": manifest("LocalQueue", "lq", 9, namespace="team-a", spec={"clusterQueue": "in-l"}),
        "flavor": manifest("ResourceFlavor", "flavor", 10, spec={}),
        "w": workload("w", 11),
    }
    async with database.write(ADMIN) as tx:
        for item in objects.values():
            tx.put(item)
    assert set(tx.roots) == {"org", "l", "left", "other", "alone", "ghost"}
    return dict(zip(objects, tx.written, strict=True))


async def _moved(
    database: Database, *objects: Manifest, remove: tuple[str, str] | None = None
) -> set[str]:
    async with database.write(ADMIN) as tx:
        for item in objects:
            tx.put(item)
        if remove is not None:
            tx.remove(remove[0], None, remove[1])
    async with database.write(ADMIN) as look:
        versions = await roots.lock(look, tx.roots)
    assert versions == tx.roots
    assert all(version == tx.changes[-1].number for version in versions.values())
    return set(tx.roots)


async def test_an_edit_moves_the_root_of_its_queue(database: Database, tree: Objects) -> None:
    assert await _moved(database, with_spec(tree["in-l"], quota=1)) == {"org"}
    assert await _moved(database, with_spec(tree["alone"], quota=1)) == {"alone"}
    assert await _moved(database, with_spec(tree["in-ghost"], quota=1)) == {"ghost"}
    assert await _moved(database, with_spec(tree["lq"], stopPolicy="Hold")) == {"org"}


async def test_status_labels_and_workloads_move_nothing(database: Database, tree: Objects) -> None:
    labelled = {**tree["alone"], "metadata": {**tree["alone"]["metadata"], "labels": {"x": "y"}}}
    touched = await _moved(
        database,
        with_status(tree["in-l"], pendingWorkloads=3),
        labelled,
        with_spec(tree["w"], priority=9),
    )
    assert touched == set()


async def test_deletion_in_progress_moves_the_root(database: Database, tree: Objects) -> None:
    metadata = {**tree["in-l"]["metadata"], "deletionTimestamp": "2026-01-02T04:00:00Z"}
    assert await _moved(database, {**tree["in-l"], "metadata": metadata}) == {"org"}


async def test_moving_a_queue_moves_both_trees(database: Database, tree: Objects) -> None:
    assert await _moved(database, with_spec(tree["in-l"], cohortName="other")) == {"org", "other"}


async def test_moving_a_cohort_moves_both_trees(database: Database, tree: Objects) -> None:
    assert await _moved(database, with_spec(tree["left"], parentName="other")) == {"org", "other"}


async def test_removing_a_cohort_in_the_middle_parts_its_tree(
    database: Database, tree: Objects
) -> None:
    assert await _moved(database, remove=("Cohort", "left")) == {"org", "left"}


async def test_a_cohort_gains_a_parent_by_an_object(database: Database, tree: Objects) -> None:
    assert await _moved(database, cohort("ghost", 20, parent="org")) == {"ghost", "org"}


async def test_a_queue_sees_cohorts_of_its_own_transaction(
    database: Database, tree: Objects
) -> None:
    new = cohort("new", 21, parent="other")
    assert await _moved(database, new, cluster_queue("q", 22, cohort="new")) == {"new", "other"}


async def test_a_flavor_moves_all(database: Database, tree: Objects) -> None:
    everything = {"org", "l", "left", "other", "alone", "ghost"}
    assert await _moved(database, with_spec(tree["flavor"], nodeLabels={"a": "b"})) == everything


async def test_a_dry_run_moves_nothing(database: Database, tree: Objects) -> None:
    async with database.write(ADMIN) as tx:
        before = await roots.lock(tx, ["org"])
    async with database.write(ADMIN, dry_run=True) as tx:
        tx.put(with_spec(tree["in-l"], quota=1))
    async with database.write(ADMIN) as tx:
        assert await roots.lock(tx, ["org"]) == before


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ({}, ("c",)),
        ({"c": None}, ("c",)),
        ({"c": "p"}, ("p",)),
        ({"c": "p", "p": "q", "q": None}, ("q",)),
        ({"c": "c"}, ("c",)),
        ({"c": "p", "p": "c"}, ("c", "p")),
        ({"c": "p", "p": "q", "q": "p"}, ("p", "q")),
    ],
    ids=["implicit", "root", "implicit parent", "deep", "itself", "cycle", "below a cycle"],
)
def test_root_of(parents: dict[str, str | None], expected: tuple[str, ...]) -> None:
    assert roots.root_of("c", parents) == expected

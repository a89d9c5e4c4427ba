"""The tree of quotas against a flow of quota: available is exactly what could still be taken."""

from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.resources import FlavorResource
from tests.builders import flavor
from tests.laws.books import Books, queue_at
from tests.laws.strategies import QUEUES, queue, some_cohort
from tests.property.strategies import COHORTS, FLAVORS

ONE = FlavorResource("one", "cpu")
STEP = 1000  # a whole cpu: quotas are whole


@st.composite
def trees(draw: st.DrawFn) -> list[Manifest]:
    return [
        *(flavor(name) for name in FLAVORS),
        *(draw(some_cohort(name)) for name in COHORTS),
        *(draw(queue(name, stopPolicy="None")) for name in QUEUES),
    ]


def charged(manifests: list[Manifest], usages: dict[str, int]) -> tuple[Image, Books]:
    of, books = Image.load([parse(manifest) for manifest in manifests]), Books(manifests)
    for name, value in usages.items():
        of.tree.charge(name, {ONE: value * STEP})
        books.charge(name, {ONE: value * STEP})
    return of, books


USAGES = st.dictionaries(st.sampled_from(QUEUES), st.integers(0, 6))


@given(trees(), USAGES, st.sampled_from(QUEUES))
def test_available_is_the_most_that_leaves_everybody_lawful(
    manifests: list[Manifest], usages: dict[str, int], name: str
) -> None:
    of, books = charged(manifests, usages)
    assume(all(books.is_lawful(place, ONE) for place in books.path(queue_at(name))))
    node = of.tree.queue(name)
    assert node is not None

    most = node.available(ONE)

    event(f"available {most // STEP}")
    assert books.fits(name, {ONE: most})
    assert not books.fits(name, {ONE: most + 1})


@given(trees(), USAGES)
def test_a_tree_in_debt_gives_nobody_more_than_is_lawful(
    manifests: list[Manifest], usages: dict[str, int]
) -> None:
    of, books = charged(manifests, usages)
    for name, node in of.tree.queues().items():
        if (most := node.available(ONE)) > 0:
            assert books.fits(name, {ONE: most})


@given(trees(), USAGES)
def test_every_number_is_that_of_the_formulae(
    manifests: list[Manifest], usages: dict[str, int]
) -> None:
    of, books = charged(manifests, usages)
    for name, node in of.tree.queues().items():
        place = queue_at(name)
        assert node.used(ONE) == books.usage(place, ONE)
        assert node.raw_available(ONE) == books.available(place, ONE)
        assert node.potential(ONE) == books.potential(place, ONE)


@given(trees(), USAGES, st.data())
def test_edits_in_any_order_end_in_the_same_tree(
    manifests: list[Manifest], usages: dict[str, int], data: st.DataObject
) -> None:
    """Usage that was there before an edit is summed up as if it had come after."""
    before = data.draw(trees())
    of, _ = charged(before, usages)
    for manifest in data.draw(st.permutations(manifests)):
        of.put(parse(manifest))
    for kind, name in {_identity(one) for one in before} - {_identity(one) for one in manifests}:
        of.remove(kind, None, name)
    wanted, _ = charged(manifests, usages)

    assert _numbers(of) == _numbers(wanted)


def _identity(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _numbers(of: Image) -> dict[str, Any]:
    return {
        name: [
            (at.name, at.used(ONE), at.raw_available(ONE), at.height) for at in (node, *node.path())
        ]
        for name, node in sorted(of.tree.queues().items())
    }
